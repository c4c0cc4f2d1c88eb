"""Ranges of the settings that the framework itself reads. A class that declares a rule for one of them goes first."""

import math
from dataclasses import replace

from nervex.loader import Loader, enum, interval, is_type, numeric
from nervex.utils.declare import Section, Setting

_COUNT = is_type(int) & interval(1)
_COUNT_OR_0 = is_type(int) & interval(0)
_FINITE = numeric(inf_ok=False)
_SECONDS = numeric() & interval(0)
_SHARE = numeric() & interval(0, 1)
_ENDLESS = enum('inf') | Loader(lambda value: interval(math.inf)(numeric()(value)), 'an infinity')
#: A value of None is left to the classes.
FRAMEWORK_RULES: dict[str, Loader] = {
    'env.manager.episode_num': _COUNT | _ENDLESS,
    'env.manager.max_retry': _COUNT_OR_0,
    'env.manager.wait_num': _COUNT,
    'env.manager.envs_per_worker': _COUNT,
    'env.manager.retry_waiting_time': _SECONDS,
    'env.manager.step_timeout': _SECONDS,
    'env.manager.reset_timeout': _SECONDS,
    'env.manager.connect_timeout': _SECONDS,
    'env.manager.step_wait_timeout': _SECONDS,
    'env.manager.retry_type': enum('reset', 'renew'),
    'env.manager.context': enum('fork', 'forkserver', 'spawn'),
}


def add_framework_rules(name: str, section: Section) -> Section:
    """Give these rules to settings that are declared without a check."""
    for path, rule in FRAMEWORK_RULES.items():
        if not path.startswith(f'{name}.'):
            continue
        above, _, key = path[len(name) + 1 :].rpartition('.')
        node = section.at(above)
        entry = node.entries.get(key) if isinstance(node, Section) else None
        if isinstance(node, Section) and isinstance(entry, Section):
            node.entries[key] = Setting(entry.defaults(), rule)
        elif isinstance(node, Section) and isinstance(entry, Setting) and entry.check is None:
            node.entries[key] = replace(entry, check=rule)
    return section
