"""Pure functions of reinforcement learning: losses, returns, exploration, samples from trajectories."""
from nervex.rl_utils.adder import Adder, TrajWindow, flatten_time
from nervex.rl_utils.categorical import entropy, log_prob, log_prob_and_entropy
from nervex.rl_utils.exploration import epsilon_greedy, get_epsilon_greedy_fn
from nervex.rl_utils.gae import gae, gae_data
from nervex.rl_utils.ppo import (
    ppo_data,
    ppo_error,
    ppo_info,
    ppo_loss,
    ppo_policy_data,
    ppo_policy_error,
    ppo_policy_loss,
    ppo_value_data,
    ppo_value_error,
)
from nervex.rl_utils.scan import reverse_scan
from nervex.rl_utils.td import (
    TDLoss,
    nstep_return,
    nstep_return_data,
    q_1step_td_data,
    q_1step_td_error,
    q_nstep_td_data,
    q_nstep_td_error,
)

__all__ = [
    'Adder', 'TDLoss', 'TrajWindow', 'entropy', 'epsilon_greedy', 'flatten_time', 'gae', 'gae_data',
    'get_epsilon_greedy_fn', 'log_prob', 'log_prob_and_entropy', 'nstep_return', 'nstep_return_data', 'ppo_data',
    'ppo_error', 'ppo_info', 'ppo_loss', 'ppo_policy_data', 'ppo_policy_error', 'ppo_policy_loss', 'ppo_value_data',
    'ppo_value_error', 'q_1step_td_data', 'q_1step_td_error', 'q_nstep_td_data', 'q_nstep_td_error', 'reverse_scan',
]
