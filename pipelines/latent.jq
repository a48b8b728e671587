# latent.jq - what a bench of time mixing (several turns) and long answers of gen-ltm say, as
# comparisons by option for ablation.jq: a value with Student's interval over turns. Run with -sc.
#
#   wkv6/7_chunked_ratio      a call for each token / the chunked form, at the most rows of a text
#   wkv6/7_recurrent_ratio    a call for each token / all tokens in one call
#   cache_N_ratio             the first N tokens without a cache / with one
#   late_early_ratio          a token of the last quarter of an answer / of the second, with a cache
def t95: [12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26][. - 2] // 2.1;
def interval: length as $n | (add / $n) as $m
    | if $n < 2 then {value: $m, lo: null, hi: null, n: $n}
      else (map((. - $m) * (. - $m)) | add / ($n - 1) / $n | sqrt) as $s
           | {value: $m, lo: ($m - ($n | t95) * $s), hi: ($m + ($n | t95) * $s), n: $n} end;
def effect($option; $metric): select(length > 0) | interval
    | {schema: "crossover/1", kind: "comparison", run: "local", by: "option", arch: "ltm",
       model: "ltm", config: $option, base_config: "base", setting: $option, metric: $metric,
       effect: "ratio", base_value: 1, config_value: .value} + .;
def wkv($kernel; $form):
    map(select(.kernel == $kernel and .form == $form and .sequences == 1))
    | (map(.rows) | max) as $most | map(select(.rows == $most) | .sequential_ratio)
    | effect("wkv"; "\($kernel)_\($form)_ratio");
def answers($cache): map(select(.kind == "generation" and .phase == "timed" and .cache == $cache));
# seconds until the first n tokens were there
def reached($n): .step_ns[$n - 1];
def key: [.id, .round];
# nanoseconds a token from share a to share b of an answer
def pace($a; $b): .step_ns as $t | ($t | length) as $n | ($n * $a | floor) as $i
    | ($n * $b | floor) as $k | ($t[$k - 1] - $t[$i - 1]) / ($k - $i);
(("wkv6", "wkv7") as $kernel | ("chunked", "recurrent") as $form | wkv($kernel; $form)),
(answers("on") as $on | answers("off") as $off
 | ($on | map(.step_ns | length) | min) as $all
 | ((32, 128, $all | select(. <= $all)) as $n
    | [$on[] | . as $a | $off[] | select(key == ($a | key)) | reached($n) / ($a | reached($n))]
    | effect("long-answers"; "cache_\($n)_ratio")),
   ([$on[] | pace(0.75; 1) / pace(0.25; 0.5)] | effect("long-answers"; "late_early_ratio")))
