"""Rock-paper-scissors by PPO against snapshots of itself, of which the average is hard to exploit."""

from easydict import EasyDict

rock_paper_scissors_ppo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='rock_paper_scissors',
            env_manager_type='vector',
            actor_env_num=256,
            evaluator_env_num=50,
            opponent_acts='sampled',
        ),
        policy=dict(
            policy_type='ppo',
            model=dict(hidden_dim_list=[16]),
            learn=dict(epochs=4, batch_size=256, learning_rate=1e-2, algo=dict(entropy_weight=0.2, adv_norm=False)),
        ),
        actor=dict(n_sample=1024),
        evaluator=dict(n_episode=50, eval_freq=2000),
        commander=dict(selfplay='pfsp', snapshot_freq=40, snapshot_keep=300, opponent_cache=300, max_env_step=150_000),
    )
)
main_config = rock_paper_scissors_ppo_default_config
