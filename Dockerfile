# CPU:    docker build -t nervex .
# CUDA:   docker build -t nervex:cuda --build-arg TORCH_INDEX=URL .     (run it with --gpus all; URL: the index of torch's
#         wheels for your CUDA version, as torch's own installation page names it; without one, what the usual index has)
# Extras: docker build -t nervex --build-arg EXTRAS=plot,video,atari .
# Runs are written below the folder that is mounted:
#         docker run --rm --user "$(id -u)" -v "$PWD:/work" nervex train -p ppo -e CartPole-v1 -s 0
ARG PYTHON=3.11
FROM python:${PYTHON}-slim AS build
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:${PYTHON}-slim
ARG TORCH_INDEX=
ARG EXTRAS=plot
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1 HOME=/work
# torch first, of the build that is wanted: what follows then finds it installed. The bound is that of setup.py.
RUN pip install ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "torch>=2.6,<2.14"
COPY --from=build /wheels /wheels
RUN pip install "$(echo /wheels/nervex-*.whl)[${EXTRAS}]" && rm -r /wheels && install -d -m 1777 /work
WORKDIR /work
USER 1000
ENTRYPOINT ["nervex"]
CMD ["-h"]
