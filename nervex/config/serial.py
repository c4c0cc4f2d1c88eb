"""Defaults of the serial workers, as the config sections that they fill; each comes from the class that uses it."""

from easydict import EasyDict

from nervex.config.sections import section_declared

_SECTIONS = {
    'base_learner_default_config': 'learner',
    'base_serial_actor_default_config': 'actor',
    'base_serial_evaluator_default_config': 'evaluator',
    'base_serial_commander_default_config': 'commander',
}


def __getattr__(name: str) -> EasyDict:
    if name not in _SECTIONS:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}; it has {", ".join(_SECTIONS)}')
    return EasyDict(section_declared(_SECTIONS[name]).defaults())
