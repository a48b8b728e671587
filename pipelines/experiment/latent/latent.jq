# latent.jq - makes samples records of what latent.mk measures besides the options of the generator
# of the latent thought model. A samples record has values by turn or text, or one count of bytes.
# compare --samples computes means and intervals of the values. Run with -sc.
#
#   wkv6/7_chunked_ratio            a call for each token / the chunked form, over 2,048 tokens
#   wkv6/7_recurrent_ratio          a call for each token / all tokens in one call
#   wkv6/7_chunked_recurrent_ratio  all tokens in one call / the chunked form
#   cache_N_ratio                   the first N tokens without a cache / with one
#   late_early_ratio                a token of the last quarter of an answer / of the second, with a
#                                   cache; MIXER_late_early_ratio: of shape ltm-l with time mixing
#   loaders_N_ratio                 tokens a second of a training with N threads that make batches /
#                                   with none; again_ratio: with layers computed again / without
#   memory_SAVED_ratio              activations of a training that keeps all / that saves;
#                                   training_8gib_ratio: memory of a training / 8 GiB
#   SOLVER_N_distance               distance of samples after N evaluations from the end of the flow
#   qat_FORMAT_ratio                perplexity in the format, by the bound, after a training in the
#                                   format / after an equal training without it
# a null among the values means that an answer has no such value
def samples($option; $metric): select(length > 0)
    | {schema: "crossover/1", kind: "samples", run: "local", arch: "ltm", option: $option,
       metric: $metric, values: map(values)}
    | if .values == [] then .values_reason = "no answer has enough steps" else . end;
def counted($option; $metric): select(. != null) | [.] | samples($option; $metric)
    | .counted = true;

def wkv($kernel; $form; $ratio; $metric):
    map(select(.kernel == $kernel and .form == $form and .sequences == 1))
    | ([.[].rows | select(. <= 2048)] | max) as $most
    | map(select(.rows == $most) | .[$ratio] | values) | samples("wkv"; "\($kernel)_\($metric)");

def answers($cache): map(select(.kind == "generation" and .phase == "timed" and .cache == $cache
    and .weights_random != true));
# the nanoseconds until the first n tokens were written
def reached($n): .step_ns[$n - 1];
def key: [.id, .round];
# nanoseconds of a token from share a to share b of an answer
def pace($a; $b): (.step_ns | length) as $n | ($n * $a | floor) as $i | ($n * $b | floor) as $j
    | (.step_ns[$j - 1] - .step_ns[$i - 1]) / ($j - $i);
# null if a quarter of the answer has no step
def late_early: if (.step_ns | length) < 4 then null else pace(0.75; 1) / pace(0.25; 0.5) end;

# tokens a second of the trainings with these loaders and this checkpoint_every, turn by turn
def rates($loaders; $every): map(select(.kind == "train" and .loaders == $loaders and
    .checkpoint_every == $every)) | (map(.step) | max) as $last
    | map(select(.step == $last).tokens_per_s);
def over($base): [., $base] | transpose | map(select(.[0] and .[1]) | .[0] / .[1]);
def kept($every; $form): map(select(.work == "train" and .rows == 4096
    and .checkpoint_every == $every and .loss_form == $form))[0];

# nats a token of a text, by id
def bound($trained; $format): map(select(.kind == "quality" and .id and .metric == "elbo_nats" and
    .quant == $format and (.model | endswith("qat-\($trained)"))
    and .value != null) | {(.id): (.value / .scored_tokens)}) | add // {};

(("wkv6", "wkv7") as $kernel
 | wkv($kernel; "chunked"; "sequential_ratio"; "chunked_ratio"),
   wkv($kernel; "recurrent"; "sequential_ratio"; "recurrent_ratio"),
   wkv($kernel; "chunked"; "recurrent_ratio"; "chunked_recurrent_ratio")),
(answers("on") as $on | answers("off") as $off
 | ($on | map(.step_ns | length) | min) as $all
 | ((32, 128, $all | select(. <= $all)) as $n
    | [$on[] | . as $a | $off[] | select(key == ($a | key)) | reached($n) / ($a | reached($n))]
    | samples("long-answers"; "cache_\($n)_ratio")),
   ([$on[] | late_early] | samples("long-answers"; "late_early_ratio"))),
(("rwkv6", "rwkv7") as $mixer
 | map(select(.kind == "generation" and .phase == "timed" and .weights_random == true and
              .mixer == $mixer) | late_early)
 | samples("long-answers"; "\($mixer)_late_early_ratio")),
(rates(0; 0) as $base
 | ((1, 2) as $n | rates($n; 0) | over($base) | samples("loaders"; "loaders_\($n)_ratio")),
   (rates(0; 1) | over($base) | samples("checkpointing"; "again_ratio"))),
(kept(0; "whole") as $all | kept(1; "fused") as $least
 | (["again", 1, "whole"], ["fused", 0, "fused"], ["both", 1, "fused"]) as [$name, $every, $form]
 | kept($every; $form).memory_ratio | counted("checkpointing"; "memory_\($name)_ratio")),
(kept(1; "fused") | select(.) | (.activations_bytes + .weights_bytes) / 8 / 1073741824
 | counted("checkpointing"; "training_8gib_ratio")),
(map(select(.kind == "solver" and .flow_distance)) | group_by([.solver, .evaluations])[]
 | .[0] as $s | map(.flow_distance)
 | samples("solvers"; "\($s.solver)_\($s.evaluations)_distance")),
(("int8", "nf4") as $format | bound($format; $format) as $aware | bound("none"; $format) as $not
 | [$aware | keys[] | select($not[.]) | $aware[.] - $not[.]] | select(length > 1)
 | samples("qat"; "qat_\($format)_ratio") | .log = true)
