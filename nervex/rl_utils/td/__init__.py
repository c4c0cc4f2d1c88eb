"""Temporal-difference errors, and the returns that they aim at: all that is imported here is offered."""
# ruff: noqa: F401

from nervex.rl_utils.td.distributional import (
    dist_1step_td_data,
    dist_1step_td_error,
    dist_nstep_td_data,
    dist_nstep_td_error,
    iqn_nstep_td_data,
    iqn_nstep_td_error,
    qrdqn_nstep_td_data,
    qrdqn_nstep_td_error,
)
from nervex.rl_utils.td.q import (
    TDLoss,
    multi_discrete_td_error,
    nstep_return,
    nstep_return_data,
    q_1step_td_data,
    q_1step_td_error,
    q_nstep_td_data,
    q_nstep_td_error,
    q_nstep_td_error_with_rescale,
    soft_q_nstep_td_data,
    soft_q_nstep_td_error,
    soft_value,
    v_1step_td_data,
    v_1step_td_error,
    v_nstep_td_data,
    v_nstep_td_error,
)
from nervex.rl_utils.td.returns import (
    generalized_lambda_returns,
    multistep_forward_view,
    rollout_nstep_data,
    rollout_nstep_return,
    td_lambda_data,
    td_lambda_error,
)
