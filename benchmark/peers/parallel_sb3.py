"""PPO on CartPole in Stable-Baselines3, one process: what a parallel run must beat to be worth it."""

import parallel_jobs as jobs
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from torch import nn


class _Watch(BaseCallback):
    def __init__(self, solved: jobs.Solved) -> None:
        super().__init__()
        self._solved = solved

    def _on_step(self) -> bool:
        ended = [info['episode']['r'] for info in self.locals['infos'] if 'episode' in info]
        return not self._solved.add(ended, self.num_timesteps)


def ppo(seed):
    s = jobs.PPO
    model = PPO(
        'MlpPolicy',
        make_vec_env(s.env_id, n_envs=s.actors * s.envs_per_actor, seed=seed),
        learning_rate=s.learning_rate,
        n_steps=s.rollout,
        batch_size=s.minibatch,
        n_epochs=s.epochs,
        gamma=s.gamma,
        gae_lambda=s.gae_lambda,
        clip_range=s.clip,
        ent_coef=0.0,
        vf_coef=s.value_weight,
        max_grad_norm=s.grad_clip_norm,
        seed=seed,
        device='cpu',
        policy_kwargs={'net_arch': {'pi': list(s.hidden), 'vf': list(s.hidden)}, 'activation_fn': nn.Tanh},
    )
    solved = jobs.Solved(s.target, s.limit_s)
    model.learn(10**7, _Watch(solved))
    return solved.record


CASES = {'ppo': ppo}
