"""Which node a role goes to."""

from nervex.parallel.ray_carrier import actor_options, names_of, node_for


def node(node_id, address, name, alive=True, **resources):
    return {
        'NodeID': node_id,
        'NodeManagerAddress': address,
        'NodeManagerHostname': name,
        'Alive': alive,
        'Resources': resources,
    }


NODES = [
    node('a', '10.0.0.1', 'cpu1'),
    node('b', '10.0.0.2', 'cpu2'),
    node('c', '10.0.0.3', 'gpu1', **{'host:big': 1000.0, 'CPU': 4.0}),
    node('d', '10.0.0.4', 'cpu4', alive=False),
]


def test_a_node_answers_to_its_address_its_host_name_and_its_own_resource():
    assert names_of(NODES[2]) == {'10.0.0.3', 'gpu1', 'big'}


def test_roles_take_turns_on_the_hosts_that_are_named():
    assert [node_for(['cpu1', '10.0.0.2', 'big'], NODES, turn) for turn in range(4)] == ['a', 'b', 'c', 'a']


def test_a_host_that_is_not_there_is_passed_over():
    assert [node_for(['cpu4', 'cpu2'], NODES, turn) for turn in range(2)] == ['b', 'b']


def test_without_any_of_them_a_role_goes_anywhere_and_a_warning_names_who_is_there(caplog):
    assert node_for(['cpu9', 'cpu4'], NODES, 0) is None
    assert 'cpu9, cpu4' in caplog.text and 'cpu1' in caplog.text


def test_only_what_is_set_becomes_an_option():
    resources = dict(num_cpus=1, num_gpus=None, hosts=None, custom={'fast': 0.1})
    assert actor_options(None, resources, 0) == {'num_cpus': 1, 'resources': {'fast': 0.1}}


class Cluster:
    def nodes(self):
        return NODES


ANY = dict(num_cpus=1, num_gpus=None, hosts=None, custom=None)


def test_a_role_is_not_started_on_a_node_that_cannot_be_reached():
    options = actor_options(Cluster(), {**ANY, 'hosts': ['cpu1']}, 0, {'a': 1.0})
    assert 'scheduling_strategy' not in options, 'the only host that is named'
    options = actor_options(Cluster(), ANY, 0, {'a': 1.0, 'b': 2.0})
    assert options['label_selector'] == {'ray.io/node-id': '!in(a,b)'}
    assert options['fallback_strategy'] == [{'label_selector': {}}], 'where there is no room elsewhere, it goes there'


def test_where_there_is_no_other_node_a_role_goes_where_it_was():
    assert actor_options(Cluster(), ANY, 0, {'a', 'b', 'c'}) == {'num_cpus': 1}
