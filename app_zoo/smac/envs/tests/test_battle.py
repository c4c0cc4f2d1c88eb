"""The rules of the micro-battle, by numbers worked by hand."""

import numpy as np
import pytest

from app_zoo.smac.envs.battle import EAST, FIRST_TARGET, NO_OP, STOP, TICK_S, TICKS, Battles
from app_zoo.smac.envs.scripted import nearest_actions, random_actions
from app_zoo.smac.envs.units import MAPS, MARAUDER, MARINE, MEDIVAC, STALKER, ZEALOT, Map


def duel(ally, enemy, apart=4.0):
    """One ally against one enemy, so many cells apart, in the middle of the field."""
    battles = Battles(Map('duel', (ally,), (enemy,), 100), 1)
    battles.reset(np.arange(1), [np.random.default_rng(0)])
    battles.x[:] = [14.0, 14.0 + apart]
    battles.y[:] = 16.0
    return battles


def test_a_weapon_strikes_at_once_and_then_after_its_cooldown():
    battles = duel(MARINE, MARINE)
    hits = []
    for _ in range(4):  # 8 ticks of 1/16 s each: strikes at 0 s, 0.86 s (tick 14), 1.72 s (tick 28)
        battles.step(np.array([[FIRST_TARGET]]))
        hits.append(int((45 - battles.health[0, 1]) / 6))
    assert hits == [1, 2, 2, 3]
    assert battles.health[0, 0] == battles.health[0, 1]  # the enemy does the same


@pytest.mark.parametrize(
    'attacker, victim, shield, health',
    [
        (MARINE, MARAUDER, 0, 120),  # 6 - 1 armor
        (MARAUDER, STALKER, 60, 80),  # 10 + 10 against armored, all on the shield, which has no armor
        (ZEALOT, MARINE, 0, 29),  # two hits of 8
        (STALKER, MARAUDER, 0, 108),  # 13 + 5 - 1
    ],
)
def test_damage_of_one_attack(attacker, victim, shield, health):
    battles = duel(attacker, victim, apart=1.0)
    battles.cooldown[1] = 1e6
    battles.wait[0, 1] = 1e6  # the victim does not answer
    battles.step(np.array([[FIRST_TARGET]]))
    assert battles.shield[0, 1] == pytest.approx(shield) and battles.health[0, 1] == pytest.approx(health)


def test_damage_beyond_the_shield_falls_on_health():
    battles = duel(MARAUDER, STALKER)
    battles.shield[0, 1] = 5.0  # of 20 points a quarter is held; 3/4 of the 19 behind the armor are left
    battles.wait[0, 1] = 1e6
    battles.step(np.array([[FIRST_TARGET]]))
    assert battles.health[0, 1] == pytest.approx(80 - 19 * 0.75)


def test_a_shield_recovers_after_ten_seconds_of_peace():
    battles = duel(STALKER, MARINE, apart=17.0)
    battles.x[0] = [1.0, 31.0]
    battles.shield[0, 0], battles.peace[0, 0] = 10.0, 10.0
    battles.speed[1] = 0.0
    shields = []
    for _ in range(24):  # half a second each
        battles.step(np.array([[STOP]]))
        shields.append(float(battles.shield[0, 0]))
    assert shields[18] == 10.0 and shields[-1] == pytest.approx(10 + 2 * 2.0, abs=0.3)


def test_a_medivac_turns_energy_into_health():
    battles = Battles(Map('heal', (MARINE, MEDIVAC), (MARINE,), 100), 1)
    battles.reset(np.arange(1), [np.random.default_rng(0)])
    battles.x[0], battles.y[0] = [5.0, 6.0, 31.0], [16.0, 16.0, 16.0]
    battles.speed[2] = 0.0
    battles.health[0, 0] = 20.0
    assert battles.available()[0, 1].nonzero()[0].tolist() == [1, 2, 3, 4, 5, FIRST_TARGET]  # comrade 0
    battles.step(np.array([[STOP, FIRST_TARGET]]))
    assert battles.health[0, 0] == pytest.approx(20 + 9 * TICK_S * TICKS)
    assert battles.energy[0, 1] == pytest.approx(50 + (0.5625 - 3) * TICK_S * TICKS)
    battles.health[0, 0] = 0.0
    battles.target[0, 1] = 0
    battles.step(np.array([[NO_OP, STOP]]))
    assert battles.health[0, 0] == 0  # the dead stay dead


def test_marauders_cannot_hit_what_flies():
    battles = duel(MARAUDER, MEDIVAC)
    assert not battles.available()[0, 0, FIRST_TARGET:].any()
    assert duel(MARINE, MEDIVAC).available()[0, 0, FIRST_TARGET:].all()


def test_a_move_covers_what_the_speed_allows_and_ends_at_the_rim():
    battles = duel(MARINE, MARINE, apart=17.0)
    battles.speed[1] = 0.0
    battles.x[0] = [5.0, 31.0]
    battles.step(np.array([[EAST]]))
    assert battles.x[0, 0] == pytest.approx(5 + 2.25 * TICK_S * TICKS)
    battles.x[0, 0] = 31.5
    assert not battles.available()[0, 0, EAST]


def test_units_do_not_stand_in_each_other():
    battles = Battles(MAPS['8m'], 1)
    battles.reset(np.arange(1), [np.random.default_rng(0)])
    for _ in range(10):
        battles.step(nearest_actions(battles))
    gap = np.hypot(battles.x[0, :, None] - battles.x[0], battles.y[0, :, None] - battles.y[0])
    alive = battles.alive[0]
    pairs = gap[np.ix_(alive, alive)][np.triu_indices(alive.sum(), 1)]
    assert pairs.min() > 0.5  # radii of 0.375 each; a crowd yields a little


@pytest.mark.parametrize('name', MAPS)
def test_battles_beside_each_other_are_those_of_single_ones(name):
    many, alone = Battles(MAPS[name], 3), [Battles(MAPS[name], 1) for _ in range(3)]
    many.reset(np.arange(3), [np.random.default_rng(k) for k in range(3)])
    for k, one in enumerate(alone):
        one.reset(np.arange(1), [np.random.default_rng(k)])
    for _ in range(40):
        outcome = many.step(nearest_actions(many))
        singles = [one.step(nearest_actions(one)) for one in alone]
        for field in ('damage', 'kills', 'won', 'lost'):
            assert getattr(outcome, field).tolist() == [getattr(o, field)[0] for o in singles]
    for field in ('x', 'y', 'health', 'shield', 'energy', 'wait'):
        assert np.array_equal(getattr(many, field), np.concatenate([getattr(one, field) for one in alone]))


def test_random_play_loses_and_play_by_rule_wins_where_units_are_even():
    def win_rate(name, act):
        battles = Battles(MAPS[name], 64)
        battles.reset(np.arange(64), [np.random.default_rng(k) for k in range(64)])
        won = np.zeros(64, bool)
        over = np.zeros(64, bool)
        for _ in range(MAPS[name].limit):
            outcome = battles.step(act(battles))
            won |= outcome.won & ~over
            over |= outcome.won | outcome.lost
        return won.mean()

    generator = np.random.default_rng(0)
    assert win_rate('3m', lambda b: random_actions(b, generator)) == 0
    assert 0.2 < win_rate('2s3z', nearest_actions) < 0.6
    assert 0.5 < win_rate('3m', nearest_actions) < 0.9
