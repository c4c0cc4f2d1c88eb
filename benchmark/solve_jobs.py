"""The jobs of ``solve_bench.py``: train until ten greedy episodes have a mean return of 195; the count is 1."""

from collections.abc import Callable

import gymnasium as gym
import numpy as np
from clock import Clock

ENV, GOAL, EPISODES, EVERY, MOST = 'CartPole-v1', 195.0, 10, 1000, 100_000


def nervex() -> dict[str, Callable]:
    from nervex.config import read_config
    from nervex.config.config import builtin_configs
    from nervex.run.build import build_serial

    def job(name: str) -> Callable[[Clock], int]:
        def solve(clock: Clock) -> int:
            config = read_config(builtin_configs()[name])
            config.env.update(env_type='gym', env_id=ENV, import_names=None, evaluator_env_num=EPISODES)
            config.evaluator.update(n_episode=EPISODES, confirm_episode=0, stop_val=GOAL)
            with build_serial(config, seed=clock.round) as run:
                with clock:
                    run.begin()
                    while run.going_on():
                        run.commander.step()
                        if run.evaluator.due(run.learner.train_iter) and run.evaluate():
                            break
                        run.collect()
                        for batch in run.batches():
                            run.train(batch)
                assert run.solved, f'not solved after {run.actor.total_step} env steps'
            return 1

        return solve

    return {'dqn': job('cartpole_dqn'), 'ppo': job('cartpole_ppo')}


def sb3() -> dict[str, Callable]:
    from stable_baselines3 import DQN, PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    class UntilSolved(BaseCallback):
        solved, seen = False, 0

        def _on_training_start(self) -> None:
            self._envs = [gym.make(ENV) for _ in range(EPISODES)]

        def _on_rollout_start(self) -> None:
            if self.num_timesteps - self.seen >= EVERY:
                self.seen = self.num_timesteps
                self.solved = evaluate(lambda obs: self.model.predict(obs, deterministic=True)[0], self._envs) >= GOAL

        def _on_step(self) -> bool:
            return not self.solved

    def solve(clock: Clock, model: object) -> int:
        until = UntilSolved()
        with clock:
            model.learn(MOST, callback=until)
        assert until.solved, f'not solved after {model.num_timesteps} env steps'
        return 1

    def dqn(clock: Clock) -> int:
        return solve(
            clock,
            DQN(
                'MlpPolicy',
                gym.make(ENV),
                learning_rate=2.3e-3,
                batch_size=64,
                buffer_size=100_000,
                learning_starts=1000,
                gamma=0.99,
                target_update_interval=10,
                train_freq=256,
                gradient_steps=128,
                exploration_fraction=0.16 * 50_000 / MOST,
                exploration_final_eps=0.04,
                policy_kwargs={'net_arch': [256, 256]},
                seed=clock.round,
                device='cpu',
            ),
        )

    def ppo(clock: Clock) -> int:
        return solve(
            clock,
            PPO(
                'MlpPolicy',
                make_vec_env(ENV, n_envs=8, seed=clock.round),
                n_steps=32,
                batch_size=256,
                gae_lambda=0.8,
                gamma=0.98,
                n_epochs=20,
                ent_coef=0.0,
                learning_rate=lambda left: left * 1e-3,
                clip_range=lambda left: left * 0.2,
                seed=clock.round,
                device='cpu',
            ),
        )

    return {'dqn': dqn, 'ppo': ppo}


def evaluate(act: Callable[[np.ndarray], np.ndarray], envs: list) -> float:
    """Mean return of one episode of each env, all acted for in one call a step, from the same starts each time."""
    obs = [env.reset(seed=i)[0] for i, env in enumerate(envs)]
    returns, running = np.zeros(len(envs)), list(range(len(envs)))
    while running:
        going_on = []
        for i, action in zip(running, act(np.stack([obs[i] for i in running]))):
            obs[i], reward, terminated, truncated, _ = envs[i].step(action)
            returns[i] += reward
            if not (terminated or truncated):
                going_on.append(i)
        running = going_on
    return float(returns.mean())


def tianshou() -> dict[str, Callable]:
    from peers.tianshou import (
        DQN,
        AdamOptimizerFactory,
        Collector,
        DiscreteQLearningPolicy,
        Net,
        OffPolicyTrainerParams,
        VectorReplayBuffer,
        _compile,
        _make,
    )

    def dqn(clock: Clock) -> int:
        training, test, env = _make(ENV, 10, clock.round), _make(ENV, EPISODES, clock.round + 100), gym.make(ENV)
        policy = DiscreteQLearningPolicy(
            model=Net(state_shape=(4,), action_shape=2, hidden_sizes=[128] * 4),
            action_space=env.action_space,
            eps_training=0.1,
            eps_inference=0.0,
        )
        algorithm = DQN(
            policy=policy,
            optim=AdamOptimizerFactory(lr=1e-3),
            gamma=0.9,
            n_step_return_horizon=3,
            target_update_freq=320,
        )
        _compile()
        collector = Collector(algorithm, training, VectorReplayBuffer(20_000, 10), exploration_noise=True)
        params = OffPolicyTrainerParams(
            training_collector=collector,
            test_collector=Collector(algorithm, test),
            test_step_num_episodes=EPISODES,
            max_epochs=MOST // EVERY,
            epoch_num_steps=EVERY,
            batch_size=64,
            collection_step_num_env_steps=10,
            update_step_num_gradient_steps_per_sample=0.1,
            verbose=False,
            show_progress=False,
            stop_fn=lambda mean: mean >= GOAL,
        )
        with clock:
            collector.reset()
            collector.collect(n_step=640, random=True)
            stats = algorithm.run_training(params)
        assert stats.best_reward >= GOAL, stats.best_reward
        return 1

    return {'dqn': dqn}
