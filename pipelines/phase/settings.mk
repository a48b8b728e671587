# settings.mk - what a run measures: the settings of the phases, with the defaults of a large run.
#
# A profile (pipelines/profiles) sets what differs, and the command line overrides both:
# make phase4 STEPS=8,16 PROMPTS=32. The comment above a setting is its meaning; `make settings` and
# pipelines/README.md show these comments.

# ---- prompts of all phases ----

# data set: a file (JSONL, ShareGPT, WikiText, text; plain or packed), or human (prompts written for
# this project), lists (lists of words to copy, reverse, shuffle), system (texts installed here)
PROMPT_FILE     ?= data/corpus/test.ndjson.gz
# more options of prep-prompts
PROMPT_FLAGS    ?=
# number of prompts
PROMPTS         ?= 64
# options of prep-prompts that choose the prompts; --per-task N takes N of each task, --per-task
# TASK=N,TASK=N takes N of each named task
PROMPT_CHOICE   ?= --count $(PROMPTS)
# number of prompts that phase 4 times; the quality then comes from untimed answers to all prompts.
# Empty: all prompts are timed
TIMED_PROMPTS   ?=
# seed of prompts, schedules, generators and resamples
SEED            ?= 1

# ---- phase 4 (quality against computation) ----

# denoising steps of LLaDA, in total over all blocks
STEPS           ?= 16,32,64,128,256
# tokens to generate
GEN_LENGTH      ?= 256
# tokens of a LLaDA block
BLOCK_LENGTH    ?= 32
# 1: the mask of LLaDA has blocks (SDAR, bd3lm). Then all commands fill blocks of BLOCK_LENGTH,
# because another length changes the mask; lengths and step counts of the experiments are rounded
# up to whole blocks. Such a model has no likelihood bound
MASK_BLOCKS     ?=
# work that both models deliver: answer (to the end of the text), fixed (exactly GEN_LENGTH tokens),
# or answer,fixed
CONTRACT        ?= answer
# more settings to sweep, each crossed with STEPS: "--unmask schedule,threshold --threshold 0.7,0.9"
SWEEP           ?=
# methods of data/methods.ndjson, by name, that phase 4 runs beside the step counts
METHODS         ?=
# drafter of LLAMA for the methods that need one (eagle3, dflash): a folder, or a name in the
# Hugging Face cache
DRAFT           ?=
# launches of each model at first; fewer than 5 give no interval
LAUNCHES        ?= 5
# make refine adds launches until the ratio of the models is known within this share (0.02: 2 %)
PRECISION       ?= 0.02
# sweeps that make refine adds launches to: aa (self-test), steps (phase 4), length-N (phase 5)
REFINED         ?= aa steps $(SCALES)
# minutes that the launches added by make refine may take
BUDGET_MINUTES  ?= 30
# rounds over the prompts in each launch
ROUNDS          ?= 1
# warm-up batches of each point, at least
WARMUP          ?= 3
# warm-up batches of each point, at most; the warm-up ends when times are steady
WARMUP_MOST     ?= 8
# times that a timed batch is repeated when other work disturbed it
AGAIN           ?= 3
# 1: both models of a pair run at once and take turns by prompt. Empty: one after the other, as
# where memory holds one model
TURNS           ?= 1
# goals of quality, TASK:METRIC:MARGIN or METRIC:MARGIN; a loss below the margin counts as none
# (shares: absolute; perplexities: relative). The first goal is the primary analysis
QUALITY         ?= judge_ppl:0.1
# margins of compare and pareto (default: those of QUALITY, 5 % for other metrics)
MARGIN          ?= 5%$(shell printf '%s\n' $(subst $(,), ,$(QUALITY)) | awk -F : \
    '{ m = $$(NF - 1); v = $$NF; printf ",%s=%s", m, (m ~ /ppl$$/) ? 100 * v "%" : v }')
# more options of pareto
PARETO_FLAGS    ?=
# encoder checkpoint (BERT, RoBERTa) for BERTScore; empty: no BERTScore
BERT            ?=
# prompts with a reference whose likelihood is computed
LIKELIHOOD_PROMPTS ?= 64
# masks drawn for each text by the likelihood bound (ELBO)
LIKELIHOOD_SAMPLES ?= 128
# orders drawn for each text by the K-step bound
LIKELIHOOD_ORDERS ?= 4
# step counts of the K-step bound
KSTEPS          ?= $(STEPS)
# unmasking rules whose passes over one answer are drawn side by side
TRACE_UNMASK    ?= schedule,factor

# ---- phases 2 and 3 (baselines, self-test) ----

# prompts of phase 2, the shortest ones
BASELINE_PROMPTS ?= 4
# tokens that phase 2 generates
BASELINE_LENGTH ?= 32
# devices of phase 2; each is compared with the first
BASELINE_DEVICES ?= ref cpu
# weight format of phase 2; activations and sums are f32
BASELINE_DTYPE  ?= f32
# LLaDA checkpoint of phase 2
BASELINE_LLADA  ?= $(LLADA)
# LLaMA checkpoint of phase 2
BASELINE_LLAMA  ?= $(LLAMA)
# share of the phase 2 prompts on which two devices must give identical ids
AGREE           ?= 0.75
# rounds over the prompts that measure the share of the machine's limits
SHARE_ROUNDS    ?= 3
# launches of the self-test
AA_LAUNCHES     ?= 12
# tokens that the self-test generates
AA_LENGTH       ?= $(GEN_LENGTH)
# denoising steps of the self-test (default: one step a token)
AA_STEPS        ?=
# half-width of the self-test's ratio at which make refine stops
AA_PRECISION    ?= 0.01
# rounds over the prompts in each launch of the self-test
AA_ROUNDS       ?= $(ROUNDS)
# make gate: folder with gen-llada and gen-llama of the older build, as OTHER/build/bin
OLD             ?=
# make gate: slowdown to tell from equal speed (0.02 or 2%); growth by more than half of it is
# an error
GATE            ?= 0.02
# 1: a machine that is not quiet, or a self-test that fails, is an error
STRICT          ?=
# 1: time on a GPU even while other processes compute on it
FORCE           ?=

# ---- phase 5 (scale) ----

# tokens to generate, one sweep for each length; the contract is fixed
SCALE_LENGTHS   ?= 128,512,1024,2048
# batch sizes
SCALE_BATCH     ?= 1,4,8,16,32
# tokens that LLaDA commits in a denoising step
SCALE_PER_STEP  ?= 1,2,4,8
# methods that phase 5 runs, by name
SCALE_METHODS   ?= $(METHODS)
# launches of each model
SCALE_LAUNCHES  ?= 5
# number of prompts
SCALE_PROMPTS   ?= 32
# quantizations to compare with the unquantized models; empty: none
QUANTS          ?= int8 nf4
# denoising steps of the small experiments (quantizations, robustness, ablation, pruning)
QUANT_STEPS     ?= $(lastword $(call split,$(STEPS)))
# tokens that the small experiments generate
QUANT_LENGTH    ?= $(GEN_LENGTH)
# batch size of the small experiments
QUANT_BATCH     ?= 8
# masks drawn by the likelihood bounds of the small experiments
QUANT_SAMPLES   ?= $(LIKELIHOOD_SAMPLES)

# ---- options of the tools, in all phases ----

# options of all generators, such as --device cuda --dtype bf16
GEN_FLAGS       ?=
# options of gen-llada
LLADA_FLAGS     ?=
# options of gen-llama
LLAMA_FLAGS     ?=
# options of gen-ltm
LTM_FLAGS       ?=
# options of score-ppl
SCORE_FLAGS     ?=
# options of probe-roof (default: device and threads of GEN_FLAGS)
ROOF_FLAGS      ?= $(filter --device=% --threads=%,$(call joined,$(GEN_FLAGS)))
# memory level of all generators: exact, mild, moderate or aggressive (make extreme, make restore)
LEVEL           ?=

# ---- the latent thought model ----

# its checkpoint; empty: it is left out
LTM             ?=
# steps of a fit, swept in phase 4
LTM_STEPS       ?= 0,4,16,64
# steps of a fit in phase 5; empty: phase 5 leaves the latent model out
SCALE_LTM_STEPS ?= 4
# steps of a fit before the likelihood bound
LIKELIHOOD_FIT  ?= 64

# ---- make shapes (two shapes with random weights) ----

# number formats of the weights
SHAPE_FORMATS ?= none int8
# batch sizes
SHAPE_BATCH   ?= 1,4
# tokens of a prompt
SHAPE_PROMPT  ?= 128
# numbers of tokens to generate
SHAPE_LENGTH  ?= 128
# denoising steps to measure (with MASK_BLOCKS: in each block)
SHAPE_STEPS   ?= 1,2,4
# denoising steps whose time is modelled
SHAPE_TO      ?= 16,32,64,128

# ---- report ----

# experiments that the figures and the page show besides the phases: decoding, load, ablation,
# latent-ablation, peer (with URL=); PAGE=decoding,ablation. Experiments that have no results yet
# are run
PAGE            ?=
# width of the figures of make paper in cm: 8.4 (a column) or 17.5 (the page)
WIDTH           ?= 8.4
# stored run that make replicate compares with
STORED          ?= data/$(PROFILE)/stored.ndjson
