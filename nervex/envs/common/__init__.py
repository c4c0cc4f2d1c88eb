from nervex.envs.common.encoders import batch_encode, binary_encode, div_one_hot, one_hot, sqrt_one_hot
from nervex.envs.common.env_element import EnvElement, EnvElementInfo, EnvElementRunner
from nervex.envs.common.team import agent_num, legal_mask, padded, team_problems

__all__ = [
    'EnvElement',
    'EnvElementInfo',
    'EnvElementRunner',
    'agent_num',
    'batch_encode',
    'binary_encode',
    'div_one_hot',
    'legal_mask',
    'one_hot',
    'padded',
    'sqrt_one_hot',
    'team_problems',
]
