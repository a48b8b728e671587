# config.mk - settings of this machine and this user; everything else is in the Makefile.
CC      ?= cc
PREFIX  ?= /usr/local
DESTDIR ?=
# SAN=1: address and undefined-behaviour sanitizers; SAN=thread: ThreadSanitizer.
SAN     ?=
# STATIC=1: link jansson, PCRE2, utf8proc, libarchive... statically. Archives of what libarchive
# needs must be there too (Debian: libacl1-dev, liblz4-dev, libzstd-dev, libxml2-dev).
STATIC  ?=
# Instruction sets of kernels/cpu beside the portable one, each compiled from the same source.
# (amx needs avx512bf16 beside it.)
CPU_LEVELS_x86_64  := amx avx512bf16 avx512 avx2
CPU_LEVELS_aarch64 := neon
CPU_LEVELS ?= $(CPU_LEVELS_$(CPU))
# Those of the checkpoints that somebody named, and not this file.
GIVEN := $(foreach v,LLADA LLAMA JUDGE,$(if $(filter undefined,$(origin $(v))),,$(v)))
# Checkpoints; default is the embedded trio. (LTM=, a latent thought model, is the profile's.)
LLADA ?= data/models/llada-demo
LLAMA ?= data/models/llama-demo
JUDGE ?= data/models/judge-demo
PROFILE ?= demo
# Put in front of generator commands, for example RUN="srun --gpus=1".
RUN ?=
# CUDA=auto: the CUDA back end is built when nvcc is found (pipelines/build/cuda.mk); 1: it must
# be; 0: it is not. CUDA_HOME=, CUDA_ARCH="90a" and NVCC= are honoured.
# NVCC="nvcc -ccbin g++-11" names the host compiler, where nvcc does not know the usual one.
CUDA ?= auto
