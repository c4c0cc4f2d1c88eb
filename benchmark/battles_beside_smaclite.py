"""
The micro-battle of app_zoo/smac beside smaclite: what a blow does and how often it comes, and how random and scripted
play end. Each part runs where its packages are, and prints rows of the table in app_zoo/smac/README.md:

    python benchmark/battles_beside_smaclite.py nervex
    python benchmark/battles_beside_smaclite.py smaclite    # in an environment with smaclite
"""

import json
import os
import sys
import tempfile
import time

import numpy as np

EPISODES = 200
PAIRS = [
    ('marine', 'marine'),
    ('stalker', 'zealot'),
    ('zealot', 'stalker'),
    ('stalker', 'stalker'),
    ('marauder', 'stalker'),
    ('marine', 'marauder'),
]
TEAMS = {'3m': {'MARINE': 3}, '2s3z': {'STALKER': 2, 'ZEALOT': 3}}


def row(*cells):
    print(' | '.join(f'{cell:.2f}' if isinstance(cell, float) else str(cell) for cell in cells), flush=True)


def summary(who, map_name, play, ends, steps, seconds):
    won, returns, lengths = (np.array(part, float) for part in zip(*ends))
    row(
        who, map_name, play, 'wins', won.mean(), 'return', returns.mean(), 'steps', lengths.mean(), int(steps / seconds)
    )


def ours():
    from app_zoo.smac.envs import units
    from app_zoo.smac.envs.battle import Battles
    from app_zoo.smac.envs.scripted import nearest_actions, random_actions
    from app_zoo.smac.envs.units import MAPS, Map, Unit
    from app_zoo.smac.envs.view import View

    kinds = {unit.name: unit for unit in vars(units).values() if isinstance(unit, Unit)}
    for first, second in PAIRS:
        lost = [struck(Battles(Map('pair', (kinds[first],), (kinds[second],), 1), 1), bare) for bare in (False, True)]
        row('nervex', f'{first} on {second}', *lost, kinds[first].cooldown)
    generator = np.random.default_rng(0)
    for name in TEAMS:
        for play, act in (('random', lambda b: random_actions(b, generator)), ('nearest', nearest_actions)):
            battles = Battles(MAPS[name], EPISODES)
            view, over = View(battles), np.zeros(EPISODES, bool)
            battles.reset(np.arange(EPISODES), [np.random.default_rng(k) for k in range(EPISODES)])
            won, returns, lengths = np.zeros(EPISODES), np.zeros(EPISODES), np.zeros(EPISODES)
            start = time.process_time()
            for _ in range(MAPS[name].limit):
                outcome = battles.step(act(battles))
                returns += view.reward(outcome) * ~over
                lengths += ~over
                won += outcome.won & ~over
                over |= outcome.won | outcome.lost
                if over.all():
                    break
            summary('nervex', name, play, zip(won, returns, lengths), lengths.sum(), time.process_time() - start)


def struck(battles, bare):
    """What one blow of the ally takes from the enemy, with its shield or without."""
    battles.reset(np.arange(1), [np.random.default_rng(0)])
    battles.x[:], battles.y[:] = [[16.0, 16.5]], 16.0
    battles.wait[0, 1] = 1e6  # the victim does not answer
    battles.cooldown[0] = 1e6  # and there is no second blow
    if bare:
        battles.shield[:] = 0.0
    before = (battles.health + battles.shield)[0, 1]
    battles.step(np.array([[6]]))
    return float(before - (battles.health + battles.shield)[0, 1])


def theirs():
    from smaclite.env import SMACliteEnv
    from smaclite.env.units.unit import Unit
    from smaclite.env.units.unit_type import StandardUnit
    from smaclite.env.util.faction import Faction

    def unit(name, faction):
        return Unit(StandardUnit[name.upper()], faction, 0, 0, 0, 0)

    for first, second in PAIRS:
        hit, bare = (unit(second, Faction.ENEMY) for _ in range(2))
        attacker = unit(first, Faction.ALLY)
        bare.shield = 0
        lost = []
        for victim in (hit, bare):
            before = victim.hp + victim.shield
            attacker.deal_damage(victim)
            lost.append(float(before - victim.hp - victim.shield))
        row('smaclite', f'{first} on {second}', *lost, attacker.max_cooldown)
    rng = np.random.default_rng(0)
    for name, team in TEAMS.items():
        limit = {'3m': 60, '2s3z': 120}[name]
        env = SMACliteEnv(map_file=map_file(name, team), seed=0)
        for play in ('random', 'nearest'):
            ends, steps, start = [], 0, time.process_time()
            for _ in range(EPISODES // (1 if play == 'nearest' else 2)):
                obs, _ = env.reset()
                total, length, done = 0.0, 0, False
                while not done and length < limit:
                    masks = env.get_avail_actions()
                    actions = [their_action(env, k, obs[k], mask, play, rng) for k, mask in enumerate(masks)]
                    obs, reward, done, _, _ = env.step(actions)
                    total, length = total + reward, length + 1
                steps += length
                ends.append((len(env.enemies) == 0, total, length))
            summary('smaclite', name, play, ends, steps, time.process_time() - start)


def their_action(env, k, obs, mask, play, rng):
    """The same play as app_zoo/smac/envs/scripted.py."""
    legal = np.flatnonzero(mask)
    if play == 'random' or k not in env.agents:
        return int(rng.choice(legal))
    here = env.agents[k].pos
    apart = {j: enemy.pos - here for j, enemy in env.enemies.items()}
    near = sorted(apart, key=lambda j: float((apart[j] ** 2).sum()))
    for j in near:
        if mask[6 + j]:
            return 6 + j
    dx, dy = apart[near[0]]
    move = (4 if dx > 0 else 5) if abs(dx) >= abs(dy) else (2 if dy > 0 else 3)
    return move if mask[move] else int(legal[0])


def map_file(name, team):
    """A map of both teams alike; smaclite has none for 3m."""
    ids = {unit: k for k, unit in enumerate(team)}
    shields = name == '2s3z'
    groups = [dict(x=x, y=16, faction=side, units=team) for x, side in ((9, 'ALLY'), (23, 'ENEMY'))]
    count = sum(team.values())
    text = dict(
        name=name,
        num_allied_units=count,
        num_enemy_units=count,
        groups=groups,
        attack_point=[9, 16],
        terrain_preset='SIMPLE',
        num_unit_types=len(team),
        ally_has_shields=shields,
        enemy_has_shields=shields,
        unit_type_ids=ids,
    )
    path = os.path.join(tempfile.mkdtemp(), f'{name}.json')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(text, file)
    return path


if __name__ == '__main__':
    ours() if sys.argv[1] == 'nervex' else theirs()
