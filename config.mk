# config.mk - settings of this machine and this user; everything else is in the Makefile.
CC      ?= cc
PREFIX  ?= /usr/local
DESTDIR ?=
# SAN=1: address and undefined-behaviour sanitizers; SAN=thread: ThreadSanitizer.
SAN     ?=
# STATIC=1: link jansson, PCRE2, utf8proc, libarchive... statically.
STATIC  ?=
# Instruction sets of kernels/cpu beside the portable one, each compiled from the same source.
CPU_LEVELS_x86_64  := avx512bf16 avx512 avx2
CPU_LEVELS_aarch64 := neon
CPU_LEVELS ?= $(CPU_LEVELS_$(shell uname -m))
# Checkpoints; default is the embedded trio.
LLADA ?= data/models/llada-demo
LLAMA ?= data/models/llama-demo
JUDGE ?= data/models/judge-demo
PROFILE ?= demo
# Put in front of generator commands, for example RUN="srun --gpus=1".
RUN ?=
