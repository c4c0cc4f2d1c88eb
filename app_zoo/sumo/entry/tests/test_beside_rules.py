"""The table of rules and policies, and the picture of crossings, without SUMO."""

from xml.etree import ElementTree

from app_zoo.sumo.entry.beside_rules import LONGEST, table
from app_zoo.sumo.entry.picture import Watched, draw
from app_zoo.sumo.envs.nets import NETS, read_net


def test_waits_are_compared_episode_by_episode():
    def infos(*waits):
        return [{'mean_wait': wait, 'arrived': 10} for wait in waits]

    lines = table('wj1', {LONGEST: infos(2.0, 9.0), 'other': infos(1.5, 8.5)})
    assert lines[2] == '| longest queue | 5.50 | 2.00 | 9.00 |  | 10 |'
    assert lines[3] == '| other | 5.00 | 1.50 | 8.50 | 0.50 (0.50 to 0.50) | 10 |'  # by half a second in each


def test_a_picture_has_a_line_a_road_and_a_band_a_green_time():
    (crossing,) = read_net(NETS['wj1']).crossings
    assert crossing.roads == ['bottom0A0', 'left0A0', 'right0A0', 'top0A0']
    standing = [dict.fromkeys(crossing.roads, 0) | {'left0A0': cars} for cars in (0, 4, 2)]
    episode = Watched(standing, [[0], [0], [1]], {'mean_wait': 2.0})
    root = ElementTree.fromstring(draw([('rule', episode)], 5, [crossing]))
    names = [child.tag.split('}')[1] for child in root]
    assert names.count('path') == 4 + 1 and names.count('rect') == 1 + 2  # axes; background
    left = next(child.get('d') for child in root if '#d9661f' in child.attrib.values())
    assert left == 'M34,134V134H354.0V24H674.0V79H994.0'  # none, the most of all, half of it
    words = [child.text for child in root if child.text]
    assert 'rule: a car stood 2.0 s on average' in words and any(word.startswith('15 s') for word in words)
