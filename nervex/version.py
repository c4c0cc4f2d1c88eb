"""Project metadata; setup.py reads this file without importing nervex."""

__TITLE__ = 'nervex'
__VERSION__ = '0.1.0'
__DESCRIPTION__ = 'Deep reinforcement learning from one config: readable parts, fast loops, honest results'
__AUTHOR__ = 'nerveX contributors'
__AUTHOR_EMAIL__ = 'nervex@users.noreply.example'
__version__ = __VERSION__
