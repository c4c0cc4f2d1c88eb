import subprocess
import sys

from nervex.design.diagrams import class_diagram, package_diagram


def test_diagrams_tell_what_the_source_says():
    packages = package_diagram().splitlines()
    assert packages[0] == 'graph TD' and any(line.strip().startswith('worker -->') for line in packages)
    assert not any('--> entry' in line or '| entry' in line for line in packages)
    policies = class_diagram('policy')
    assert '    CommonPolicy <|-- DQNPolicy' in policies.splitlines() and 'class DQNPolicy' in policies


def test_the_command_writes_one_file_a_package(tmp_path):
    done = subprocess.run([sys.executable, '-m', 'nervex.design', str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in tmp_path.iterdir()}
    assert {'packages.md', 'policy.md', 'run.md'} <= names and done.stdout.count('\n') == len(names)
    assert (tmp_path / 'packages.md').read_text().startswith('# packages\n\n```mermaid\ngraph TD\n')
