# replicate.jq - does this run (slurped) say what a $stored one said? Both as stored.jq makes them.
#
#   token ids, quality   of the same checkpoints: equal to the digit on the same kind of machine
#                        (device, instruction set, formats); on another quality by its intervals
#   memory               on the same kind: equal; page-rounded and driver's memory within 2 %; what
#                        the kernel holds resident for a process, its huge pages: not compared
#   time                 never as such: the ratio of a LLaDA-type point to the LLaMA-type point of
#                        the same work, by intervals widened by 1.1 on the same processor and 2 on
#                        another; not where a machine was disturbed
#   points               of this run that the stored one has not: said, and not compared
#   crossovers           by their intervals: of quality always, of time on the same processor
# The same processor: not by its name alone, which virtual machines of several kinds share. A run
# that was stored before records said more than the name is of another one.
def processor: [.cpu, .cpu_vendor, .cpu_family, .cpu_model, .cpu_flags, .cores, .gpu];
def checkable: ($stored[] | select(.what == "run")) as $was | (.[] | select(.what == "run")) as $now
    | ($was.machine | processor) == ($now.machine | processor);
def key: "\(.config) on \(.workload)";
def points: map(select(.what == "point")) | INDEX(key);
def same_kind($a; $b): [$a, $b | [.device, .device_name, .isa, .library, .dtype, .kv_dtype, .quant]]
    | .[0] == .[1];
def close($a; $b; $share): ($a - $b | fabs) <= $share * ([$a, $b | fabs] | max);
def overlap($a; $b): ($a.lo == null or $b.hi == null or $a.lo <= $b.hi)
    and ($b.lo == null or $a.hi == null or $b.lo <= $a.hi);
def said($pass; $of; $what; $was; $now):
    {schema: "crossover/1", kind: "check", run: "local", check: "replicate", config: $of,
     metric: $what, stored: $was, value: $now, pass: $pass,
     text: "\(if $pass == null then "not compared" elif $pass then "agrees" else "DIFFERS" end
              )  \($of) / \($what): \($was) then, \($now) now"};

# The ratio of two sets of launch means with its 95 % interval on the log scale; null: none, as
# below five launches anywhere (lib/stat/launch.h).
def mean: add / length;
def ratio($a; $b): if $a.disturbed == true or $b.disturbed == true
        or ([$a, $b | .launches // [] | length] | min) < 5 then null
    else [$a, $b | .launches | map(log)] as [$x, $y] | ([$x, $y | length] | min) as $n
    | ([12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26][$n - 2] // 2.2) as $t
    | ([$x, $y | mean as $m | (map((. - $m) * (. - $m)) | add) / (length - 1) / length]
       | add | sqrt) as $s
    | (($x | mean) - ($y | mean)) as $r
    | {value: ($r | exp), lo: ($r - $t * $s | exp), hi: ($r + $t * $s | exp)} end;
def rival($all): . as $p | first($all[] | select(.arch == "llama" and .max_new == $p.gen_length
    and ([.workload, .contract, .batch, .quant] == ($p | [.workload, .contract, .batch, .quant]))));
def three: if type == "number" then . * 1000 | round / 1000 else . end;
def words: if . == null then "disturbed, or too few launches"
    else "\(.value | three) [\(.lo | three), \(.hi | three)]" end;

# By what share memory of that name may differ on the same kind of machine; null: not compared.
def tolerance($p): if test("^huge_page") then null
    elif test("^(device|process|load)_peak") then (if $p.device == "cpu" then null else 0.02 end)
    elif test("^(reserved|fragmentation)") then 0.02 else 1e-9 end;
def disturbed: any(.[]; .what == "point" and .metrics.e2e_ns.disturbed == true);

def compare_answers($was; $now; $alike):
    ($was.ids // {} | length) as $n
    | ([$was.ids // {} | keys_unsorted[] | select($was.ids[.] == $now.ids[.])] | length) as $same
    | select($n > 0)
    | said(if $alike then $same == $n and ($now.ids | length) == $n else null end;
           $now.config; "token_ids"; "\($n) answers"; "\($same) identical");

def compare_quality($was; $now; $alike):
    $was.quality // {} | to_entries[] | .key as $q | .value as $a | $now.quality[$q] as $b
    | said(if $b == null then false elif $alike then close($a.value; $b.value; 1e-6)
           elif $a.lo == null or $b.lo == null then null else overlap($a; $b) end;
           $now.config; $q; $a.value; $b.value);

def compare_memory($was; $now):
    $was.memory // {} | to_entries[] | (.key | tolerance($was)) as $share
    | select($share != null and ($was.threads == $now.threads
                                 or (.key | test("^(weights|kv|device|process)"))))
    | $now.memory[.key] as $b
    | said($b != null and close(.value; $b; $share); $now.config; "memory_\(.key)"; .value; $b);

def compare_time($was; $now; $old; $new; $here):
    ratio($now.metrics.e2e_ns; ($now | rival($new)).metrics.e2e_ns) as $r
    | ratio($was.metrics.e2e_ns; ($was | rival($old)).metrics.e2e_ns) as $s
    | (if $here then 1.1 else 2 end) as $wide
    | said(if $r == null or $s == null then null
           else $s.lo / $wide <= $r.hi and $r.lo / $wide <= $s.hi end;
           $now.config; "time as a multiple of the LLaMA-type"; $s | words; $r | words);

def compare_crossover($a; $b; $here; $quiet):
    said(if $b == null or $a.name == "X_par" then null
         elif $a.name == "X_lat" and ($here and $quiet | not) then null
         else $a.exists == $b.exists and overlap($a; $b) end;
         $a.llada; "\($a.name)\(if $a.quality_metric then " by \($a.quality_metric)" else "" end
             ), contract \($a.contract)"; $a.at | three; $b.at | three);

. as $run | checkable as $here | (($run | disturbed) or ($stored | disturbed) | not) as $quiet
| ($run | points) as $new | ($stored | points) as $old
| ($old | keys_unsorted[]) as $k | $old[$k] as $was | $new[$k] as $now
| (if $now == null then said(null; $was.config; "point"; "measured"; "not in this run")
   elif $was.checkpoint != $now.checkpoint
   then said(false; $now.config; "checkpoint"; "other files of \($was.model)"; "these")
   else same_kind($was; $now) as $alike
        | compare_answers($was; $now; $alike), compare_quality($was; $now; $alike),
          (select($alike) | compare_memory($was; $now)),
          (select($now.arch == "llada") | compare_time($was; $now; $old; $new; $here))
   end),
  (select($k == ($old | keys_unsorted[0])) | $new | to_entries[] | select($old[.key] == null)
   | said(null; .value.config; "point"; "not in the stored run"; "measured")),
  (select($k == ($old | keys_unsorted[0])) | ($stored[] | select(.what == "crossover")) as $a
   | ["name", "quality_metric", "llada", "llama_config", "gen_length", "contract"] as $names
   | compare_crossover($a; first(($run[] | select(.what == "crossover"
             and [.[$names[]]] == [$a[$names[]]])), null); $here; $quiet))
