"""The shape of the code that the design promises."""

import ast
import inspect
from pathlib import Path

import nervex
from nervex.entry.serial_entry import serial_pipeline

ROOT = Path(nervex.__file__).parent


def test_body_of_serial_pipeline_fits_one_screen():
    function = ast.parse(inspect.getsource(serial_pipeline)).body[0]
    first = function.body[1] if isinstance(function.body[0], ast.Expr) else function.body[0]
    assert function.end_lineno - first.lineno + 1 <= 45


def test_files_and_functions_stay_small():
    for path in ROOT.rglob('*.py'):
        if 'tests' in path.parts:
            continue
        text = path.read_text(encoding='utf-8')
        assert text.count('\n') <= 600, f'{path.relative_to(ROOT)} has more than 600 lines'
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                assert node.end_lineno - node.lineno <= 80, f'{path.relative_to(ROOT)}: {node.name}'
