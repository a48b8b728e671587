# config.mk - settings of this machine and this user; everything else is in the Makefile.
CC      ?= cc
PREFIX  ?= /usr/local
DESTDIR ?=
# SAN=1: address and undefined-behaviour sanitizers; SAN=thread: ThreadSanitizer.
SAN     ?=
# STATIC=1: link jansson, PCRE2, utf8proc, libarchive... statically.
STATIC  ?=
# Processor levels of kernels/cpu, each compiled from the same source. Empty on other machines.
CPU_LEVELS ?= $(if $(filter x86_64,$(shell uname -m)),v4 v3,)
# Checkpoints; default is the embedded trio.
LLADA ?= data/models/llada-demo
LLAMA ?= data/models/llama-demo
JUDGE ?= data/models/judge-demo
PROFILE ?= demo
# Put in front of generator commands, for example RUN="srun --gpus=1".
RUN ?=
