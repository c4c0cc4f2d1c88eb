"""Pure functions of reinforcement learning: losses, returns, exploration, samples. All imported here is offered."""
# ruff: noqa: F401

from types import ModuleType as _ModuleType

from nervex.rl_utils.a2c import a2c_data, a2c_error, a2c_error_continuous, a2c_loss
from nervex.rl_utils.adder import Adder, TrajWindow
from nervex.rl_utils.alphazero import alphazero_data, alphazero_error, alphazero_loss
from nervex.rl_utils.categorical import (
    entropy,
    gaussian_entropy,
    gaussian_kl_divergence,
    gaussian_log_prob,
    gaussian_log_prob_and_entropy,
    kl_divergence,
    log_prob,
    log_prob_and_entropy,
)
from nervex.rl_utils.coma import coma_data, coma_error, coma_loss
from nervex.rl_utils.epsilon import epsilon_greedy, get_epsilon_greedy_fn
from nervex.rl_utils.flatten import flatten_time
from nervex.rl_utils.gae import gae, gae_data
from nervex.rl_utils.isw import compute_importance_weights
from nervex.rl_utils.noise import BaseNoise, GaussianNoise, OUNoise, create_noise_generator
from nervex.rl_utils.ppo import (
    ppg_data,
    ppg_joint_error,
    ppg_joint_loss,
    ppo_data,
    ppo_error,
    ppo_error_continous,
    ppo_error_continuous,
    ppo_info,
    ppo_loss,
    ppo_policy_data,
    ppo_policy_error,
    ppo_policy_loss,
    ppo_value_data,
    ppo_value_error,
)
from nervex.rl_utils.scan import reverse_scan
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
from nervex.rl_utils.transforms import beta_function_map, value_inv_transform, value_transform
from nervex.rl_utils.upgo import tb_cross_entropy, upgo_loss, upgo_returns
from nervex.rl_utils.vtrace import (
    vtrace_advantage,
    vtrace_data,
    vtrace_error,
    vtrace_loss,
    vtrace_nstep_return,
    vtrace_targets,
    vtrace_targets_data,
)

__all__ = [name for name, item in list(globals().items()) if name[0] != '_' and not isinstance(item, _ModuleType)]
