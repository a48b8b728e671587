# config.mk - settings of the build. The file local.mk (not committed) can set any of them for one
# machine. make settings prints these settings and the settings of the experiments.

# C compiler
CC      ?= cc
# folder to install to
PREFIX  ?= /usr/local
# folder put before PREFIX when a package is built
DESTDIR ?=
# sanitizers: 1 (address and undefined behaviour), thread, fuzz (for make fuzz), or coverage (for
# make coverage); each has a build folder of its own
SAN     ?=
# 1: link the libraries statically. The archives of libarchive's own libraries are needed, too
# (Debian: libacl1-dev, liblz4-dev, libzstd-dev, libxml2-dev)
STATIC  ?=
CPU_LEVELS_x86_64  := amx avx512bf16 avx512 avxvnni avx2
CPU_LEVELS_aarch64 := i8mm dotprod neon
# The flag in /proc/cpuinfo of a processor that has the level. A level without a flag is always
# there.
CPU_FLAG_amx        := amx_tile avx512_bf16
CPU_FLAG_avx512bf16 := avx512_bf16
CPU_FLAG_avx512     := avx512vl
CPU_FLAG_avxvnni    := avx_vnni avx2
CPU_FLAG_avx2       := avx2
CPU_FLAG_i8mm       := i8mm asimddp
CPU_FLAG_dotprod    := asimddp
CPU_KNOWS   := $(shell grep -m 1 -e ^flags -e ^Features /proc/cpuinfo)
CPU_LACKS   := $(if $(CPU_KNOWS),$(foreach l,$(CPU_LEVELS_$(CPU)),$(if $(filter-out $(CPU_KNOWS),\
                   $(CPU_FLAG_$(l))),$(l))))
# instruction sets that kernels/cpu is compiled for besides the portable C: those of this processor,
# or all (for make lease, with RUN, and for a package); amx needs avx512bf16
CPU_LEVELS ?= $(if $(or $(RUN),$(filter lease,$(MAKECMDGOALS))),all,$(filter-out $(CPU_LACKS),\
                  $(CPU_LEVELS_$(CPU))))
override CPU_LEVELS := $(if $(filter all,$(CPU_LEVELS)),$(CPU_LEVELS_$(CPU)),$(CPU_LEVELS))
# checkpoints that the user named; for the others this file has a default
GIVEN := $(foreach v,LLADA LLAMA JUDGE,$(if $(filter undefined,$(origin $(v))),,$(v)))
# LLaDA checkpoint: a folder, a GGUF file, a name in the Hugging Face cache, or synth:llada-8b
LLADA ?= data/models/llada-demo
# LLaMA checkpoint
LLAMA ?= data/models/llama-demo
# checkpoint of the judge, a third model, larger than both
JUDGE ?= data/models/judge-demo
# two models with a judge and their settings: a file of pipelines/pairs (make pairs). Empty: LLADA,
# LLAMA and JUDGE name the models
PAIR ?=
# settings of a run: a file of pipelines/profiles
PROFILE ?= demo
# command put before the generator commands, such as "srun --gpus=1"
RUN ?=
# CUDA back end: auto (built when nvcc is found), 1 (required) or 0 (left out)
CUDA ?= auto
