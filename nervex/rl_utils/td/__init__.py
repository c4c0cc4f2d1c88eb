"""Temporal-difference errors."""
from nervex.rl_utils.td.loss import TDLoss
from nervex.rl_utils.td.nstep import nstep_return, nstep_return_data
from nervex.rl_utils.td.q import q_1step_td_data, q_1step_td_error, q_nstep_td_data, q_nstep_td_error

__all__ = [
    'TDLoss', 'nstep_return', 'nstep_return_data', 'q_1step_td_data', 'q_1step_td_error', 'q_nstep_td_data',
    'q_nstep_td_error',
]
