"""BitFlip with 15 bits by DQN alone, which never sees a reward: what hindsight is compared with."""

from app_zoo.classic_control.bitflip.entry.bitflip_her_dqn_default_config import bitflip_her_dqn_default_config
from nervex.utils.config_helper import deep_merge_dicts

bitflip_dqn_default_config = deep_merge_dicts(bitflip_her_dqn_default_config, {})
bitflip_dqn_default_config.actor.pop('transform')
bitflip_dqn_default_config.commander.max_env_step = 100_000
main_config = bitflip_dqn_default_config
