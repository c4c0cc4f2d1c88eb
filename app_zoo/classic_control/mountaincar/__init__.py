"""MountainCar."""
