# crossover in a container.
#
#   docker build -t crossover .
#   docker run --rm -v "$PWD/results:/crossover/results" crossover all
#   docker run --rm -v "$HOME/.cache/huggingface:/models:ro" -v "$PWD/results:/crossover/results" \
#       crossover all LLADA=org/name LLAMA=org/name JUDGE=org/name
#
# For a GPU, build on an image with the CUDA toolkit, run with `docker run --gpus all`:
#
#   docker build -t crossover --build-arg BASE=nvidia/cuda:12.6.3-devel-ubuntu24.04 \
#       --build-arg RUN_BASE=nvidia/cuda:12.6.3-runtime-ubuntu24.04 .
#
# Images are named by their day, and packages come from Debian's archive of that day (the address is
# in the image itself), so the same file builds the same system later. SNAPSHOT= takes the newest.
ARG BASE=debian:bookworm-20250520-slim
# The same system without the compiler of the toolkit; what BASE built is not built again.
ARG RUN_BASE=$BASE
ARG SNAPSHOT=1

FROM $BASE AS built
ARG SNAPSHOT
WORKDIR /crossover
COPY . .
# The image may run on another processor than this one.
ENV CPU_LEVELS=all
RUN pipelines/bin/snapshot "$SNAPSHOT" && ./bootstrap tools

FROM $RUN_BASE
ARG SNAPSHOT
WORKDIR /crossover
COPY --from=built /crossover .
ENV CPU_LEVELS=all
RUN pipelines/bin/snapshot "$SNAPSHOT" && ./bootstrap tools && rm -rf /var/lib/apt/lists/*
ENV HF_HOME=/models
ENTRYPOINT ["make"]
CMD ["all"]
