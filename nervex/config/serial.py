"""Defaults of the serial workers, as the config sections that they fill; each comes from the class that uses it."""

from easydict import EasyDict

from nervex.config.sections import section_declared

base_learner_default_config = EasyDict(section_declared('learner').defaults())
base_serial_actor_default_config = EasyDict(section_declared('actor').defaults())
base_serial_evaluator_default_config = EasyDict(section_declared('evaluator').defaults())
base_serial_commander_default_config = EasyDict(section_declared('commander').defaults())
