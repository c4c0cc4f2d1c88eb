"""Changes to training samples on their way from the actor to the buffer: relabelling and the like."""

from nervex.worker.actor.transform.hindsight import HindsightRelabel
from nervex.worker.actor.transform.sample_transform import SampleTransform, SampleTransforms

__all__ = ['HindsightRelabel', 'SampleTransform', 'SampleTransforms']
