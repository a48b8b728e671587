# crossover in a container, for the CPU.
#
#   docker build -t crossover .
#   docker run --rm -v "$PWD/results:/crossover/results" crossover all
#   docker run --rm -v "$HOME/.cache/huggingface:/models:ro" -v "$PWD/results:/crossover/results" \
#       crossover all LLADA=org/name LLAMA=org/name JUDGE=org/name
FROM debian:bookworm-slim
WORKDIR /crossover
COPY . .
RUN ./bootstrap tools && rm -rf /var/lib/apt/lists/*
ENV HF_HOME=/models
ENTRYPOINT ["make"]
CMD ["all"]
