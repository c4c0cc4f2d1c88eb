"""Temporal-difference errors, and the returns that they aim at."""

from nervex.rl_utils.td.distributional import (
    dist_1step_td_data,
    dist_1step_td_error,
    dist_nstep_td_data,
    dist_nstep_td_error,
)
from nervex.rl_utils.td.lambda_returns import (
    generalized_lambda_returns,
    multistep_forward_view,
    td_lambda_data,
    td_lambda_error,
)
from nervex.rl_utils.td.loss import TDLoss
from nervex.rl_utils.td.multi_discrete import multi_discrete_td_error
from nervex.rl_utils.td.nstep import nstep_return, nstep_return_data
from nervex.rl_utils.td.q import (
    q_1step_td_data,
    q_1step_td_error,
    q_nstep_td_data,
    q_nstep_td_error,
    q_nstep_td_error_with_rescale,
)
from nervex.rl_utils.td.quantile import iqn_nstep_td_data, iqn_nstep_td_error, qrdqn_nstep_td_data, qrdqn_nstep_td_error
from nervex.rl_utils.td.rollout import rollout_nstep_data, rollout_nstep_return
from nervex.rl_utils.td.soft_q import (
    q_v_1step_td_data,
    q_v_1step_td_error,
    soft_q_nstep_td_data,
    soft_q_nstep_td_error,
    soft_value,
)
from nervex.rl_utils.td.value import v_1step_td_data, v_1step_td_error, v_nstep_td_data, v_nstep_td_error

__all__ = [
    'TDLoss',
    'dist_1step_td_data',
    'dist_1step_td_error',
    'dist_nstep_td_data',
    'dist_nstep_td_error',
    'generalized_lambda_returns',
    'iqn_nstep_td_data',
    'iqn_nstep_td_error',
    'multi_discrete_td_error',
    'multistep_forward_view',
    'nstep_return',
    'nstep_return_data',
    'q_1step_td_data',
    'q_1step_td_error',
    'q_nstep_td_data',
    'q_nstep_td_error',
    'q_nstep_td_error_with_rescale',
    'q_v_1step_td_data',
    'q_v_1step_td_error',
    'qrdqn_nstep_td_data',
    'qrdqn_nstep_td_error',
    'rollout_nstep_data',
    'rollout_nstep_return',
    'soft_q_nstep_td_data',
    'soft_q_nstep_td_error',
    'soft_value',
    'td_lambda_data',
    'td_lambda_error',
    'v_1step_td_data',
    'v_1step_td_error',
    'v_nstep_td_data',
    'v_nstep_td_error',
]
