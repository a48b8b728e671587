#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Tests latent thought models from outside: training, generating, scoring. tests/model/test-think.c
# and test-posterior.c test the numbers themselves.
load conforms

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    export BIN="${BIN:-build/bin}" D="$BATS_FILE_TMPDIR"
    "$BIN/write-corpus" --count 60 --seed 1 -o "$D/corpus"
    # short runs, tiny shapes; the options of a training
    export SHAPE="--width 32 --layers 2 --heads 2 --kv-heads 2 --ffn 48 --vocab 300 --context 256
        --latents 3 --window 24 --vi-steps 4 --steps 30 --warmup 3 --rate 0.01 --rows 384
        --max-len 96 --threads 1"
    # shellcheck disable=SC2086
    "$BIN/train-lm" -q --arch ltm $SHAPE --report 5 --valid "$D/corpus" --out "$D/m" "$D/corpus" \
        > "$D/loss"
}

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    cat > "$T/prompts" << 'END'
{"id":"p1","text":"Write a story about a boat."}
{"id":"p2","prompt_ids":[5,6,7,8,9,10,11]}
{"id":"p3","prompt_ids":[12]}
END
    GEN=("$BIN/gen-ltm" -m "$D/m" --max-new 8 --ignore-eos --no-meta -q --threads 1)
    read -rd '' -a shape <<< "$SHAPE" || true
}

ids() { jq -c '[.id, .token_ids]' "$@" | sort; }

@test "training: the loss falls; records and checkpoint hold the settings" {
    jq -se 'map(select(.kind == "train")) | .[0].loss > .[-1].loss + 0.3 and
        all(.arch == "ltm" and .paradigm == "latent") and .[-1].valid_loss < .[0].loss - 0.3' \
        "$D/loss"
    conforms "$D/loss"
    jq -e '.architectures == ["LatentThoughtForCausalLM"] and .mixer == "swa" and
        .sliding_window == 24 and .latents_per_layer == 3' "$D/m/config.json"
    jq -se '.[0].rows == 30 * 384 * 5' "$D/m/training.ndjson" # each row five times
}

@test "training gives the same bits at 1 and 3 threads, and after an interruption" {
    train=("$BIN/train-lm" -q --no-meta --arch ltm "${shape[@]}" --steps 6)
    "${train[@]}" --out "$T/one" "$D/corpus" > "$T/loss"
    "${train[@]}" --threads 3 --out "$T/three" "$D/corpus" > "$T/loss"
    cmp "$T/one/model.safetensors" "$T/three/model.safetensors"
    run -74 "${train[@]}" --save 2 --report 4 --out "$T/again" -o /dev/full "$D/corpus"
    [ -e "$T/again/train.state" ]
    "${train[@]}" --out "$T/again" "$D/corpus" > "$T/loss"
    cmp "$T/one/model.safetensors" "$T/again/model.safetensors"
    cp "$D/m/config.json" "$T/again/train.state"
    run -65 "${train[@]}" --out "$T/again" "$D/corpus"
}

@test "--init: a left-to-right model gets latents; a state of other settings is refused" {
    plain=(--width 32 --layers 2 --heads 2 --kv-heads 2 --ffn 48 --vocab 300 --context 256 -q
           --no-meta --max-len 96 --rows 384 --steps 4 --threads 1)
    "$BIN/train-lm" --arch llama "${plain[@]}" --out "$T/llama" "$D/corpus" > "$T/loss"
    "$BIN/train-lm" --arch ltm "${plain[@]}" --latents 2 --vi-steps 2 --init "$T/llama" \
        --out "$T/ltm" "$D/corpus" > "$T/loss"
    jq -e '.latents_per_layer == 2 and .sliding_window == 256' "$T/ltm/config.json"
    jq -se 'map(.arch) == ["llama", "ltm"]' "$T/ltm/training.ndjson"
    run -74 "$BIN/train-lm" --arch ltm "${plain[@]}" --save 2 --report 4 --vi-steps 2 \
        --out "$T/cut" -o /dev/full "$D/corpus"
    for other in "--vi-steps 3" "--vi-rate 0.2" "--latents 5" "--window 9"; do
        # shellcheck disable=SC2086
        run -65 --separate-stderr "$BIN/train-lm" --arch ltm "${plain[@]}" --vi-steps 2 $other \
            --out "$T/cut" "$D/corpus"
        [[ $stderr == *"${other% *} expected "* || $stderr == *"another shape"* ||
            $stderr == *"not a state of this network"* ]]
    done
}

@test "a generation holds the cost and the gain of fitting" {
    "${GEN[@]}" --vi-steps 0,8 "$T/prompts" > "$T/out"
    conforms "$T/out"
    jq -se 'length == 6 and all(.arch == "ltm" and .paradigm == "latent" and .axis == "vi_steps"
        and .z == "posterior" and .new_tokens == 8 and .passes == 8 and .state_bytes > 0
        and .vi_ns + .decode_ns == .e2e_ns and .ttft_ns > .vi_ns and .kl_nats > 0
        and .emit_tokens == [1,1,1,1,1,1,1,1])
        and ([.[].series] | unique | length) == 1 and ([.[].point] | unique | length) == 2
        and (map(select(.vi_steps == 0)) | all(.elbo_nats == null and
            .elbo_nats_reason == "nothing was fitted"))
        and (map(select(.vi_steps == 8)) | all(.elbo_nats != null))' "$T/out"
    jq -se '(map(select(.vi_steps == 8 and .id == "p1").model_flops) | add) >
        2 * (map(select(.vi_steps == 0 and .id == "p1").model_flops) | add)' "$T/out"
    "${GEN[@]}" --z prior,zero "$T/prompts" > "$T/out"
    conforms "$T/out"
    jq -se 'length == 6 and all(.vi_steps == null and .kl_nats == null and .elbo_nats == null and
        .kl_nats_reason == "nothing was fitted")' "$T/out"
}

@test "batch, cache and threads change no id; seed, source and steps change ids" {
    for how in "--vi-steps 4" "--vi-steps 4 --z-draw sample --refit 3" "--z prior"; do
        read -ra more <<< "$how --temperature 1 --max-new 40"
        "${GEN[@]}" "${more[@]}" "$T/prompts" > "$T/a"
        "${GEN[@]}" "${more[@]}" --batch 3 --threads 3 "$T/prompts" > "$T/b"
        "${GEN[@]}" "${more[@]}" --cache off "$T/prompts" > "$T/c"
        cmp <(ids "$T/a") <(ids "$T/b")
        cmp <(ids "$T/a") <(ids "$T/c")
    done
    "${GEN[@]}" "${more[@]}" --seed 8 "$T/prompts" > "$T/b"
    run -1 cmp -s <(ids "$T/a") <(ids "$T/b")
    "${GEN[@]}" "${more[@]}" --z zero "$T/prompts" > "$T/b"
    run -1 cmp -s <(ids "$T/a") <(ids "$T/b")
    # two runs in one process equal two processes
    "${GEN[@]}" --vi-steps 4 --repeat 2 "$T/prompts" > "$T/b"
    "${GEN[@]}" --vi-steps 4 "$T/prompts" > "$T/a"
    cmp <(ids "$T/a" "$T/a") <(ids "$T/b")
}

@test "a pass costs the same at every position, in rows and in slots of the text" {
    "${GEN[@]}" --z zero --max-new 200 <(sed -n 3p "$T/prompts") > "$T/long"
    "${GEN[@]}" --z zero --max-new 100 <(sed -n 3p "$T/prompts") > "$T/short"
    jq -se '.[0].state_bytes == .[1].state_bytes and .[0].rows == 200 and
        .[0].memory.kv_bytes == .[1].memory.kv_bytes' "$T/long" "$T/short"
}

@test "a latent model is quantized, planned, watched and checked like other models" {
    "${GEN[@]}" --quant int8 --vi-steps 2 "$T/prompts" > "$T/int8"
    jq -se 'all(.quant == "int8" and .status == "ok")' "$T/int8"
    "$BIN/pack-model" -q --quant int8 -m "$D/m" --out "$T/packed" > "$T/log"
    "$BIN/gen-ltm" -m "$T/packed" "${GEN[@]:3}" --vi-steps 2 "$T/prompts" > "$T/packed.out"
    cmp <(ids "$T/int8") <(ids "$T/packed.out")
    "${GEN[@]}" --vi-steps 2 --batch 3 --explain "$T/prompts" > "$T/plan"
    "${GEN[@]}" --vi-steps 2 --batch 3 "$T/prompts" > "$T/ran"
    [ "$(jq .planned_bytes "$T/plan")" -eq "$(jq -s '.[0].memory.planned_bytes' "$T/ran")" ]
    jq -se 'all(.memory.planned_bytes == .memory.weights_bytes + .memory.kv_bytes +
        .memory.activations_bytes)' "$T/ran"
    "${GEN[@]}" --mem-cap 200K "$T/prompts" > "$T/oom" || [ "$?" -eq 1 ]
    jq -se 'all(.status == "oom" and .vi_ns == null)' "$T/oom"
    "${GEN[@]}" --vi-steps 2 --trace "$T/trace" "$T/prompts" > "$T/seen"
    cmp <(ids "$T/seen") <(ids <("${GEN[@]}" --vi-steps 2 "$T/prompts"))
    [ "$(jq -s 'map(select(.kind == "commit")) | length' "$T/trace")" -eq 24 ]
    "${GEN[@]}" --vi-steps 2 --self-check 1 --repeat 2 "$T/prompts" > "$T/seen"
    [ "$(wc -l < "$T/seen")" -eq 6 ]
}

@test "wrong combinations of tool, device, mode and target are refused" {
    run -65 --separate-stderr "$BIN/gen-llama" -m "$D/m" "$T/prompts"
    [[ $stderr == *"gen-llama does not run latent models (try gen-ltm)"* ]]
    run -65 --separate-stderr "$BIN/gen-ltm" -m synth:tiny-llama "$T/prompts"
    [[ $stderr == *"try gen-llama"* ]]
    for how in "--z zero" "--vi-steps 4 --keep-latents"; do
        read -ra more <<< "$how"
        "${GEN[@]}" --device ref "${more[@]}" "$T/prompts" > "$T/ref"
        "${GEN[@]}" "${more[@]}" "$T/prompts" > "$T/cpu"
        cmp <(ids "$T/ref") <(ids "$T/cpu")
    done
    jq -se 'group_by(.id) | all([.[0].latents, .[1].latents] | transpose |
        all(.[0] - .[1] | fabs < 2e-3))' "$T/ref" "$T/cpu"
    for mode in judge nll kstep; do
        run -65 --separate-stderr "$BIN/score-ppl" --mode $mode -m "$D/m" "$T/prompts"
        [[ $stderr == *"does not work with this latent checkpoint (try --mode elbo)"* ]]
    done
    run -65 --separate-stderr "$BIN/score-ppl" --mode iwae -m synth:tiny-llada "$T/prompts"
    echo '{"id":"p","text":"one","reference":"two"}' > "$T/pair"
    run --separate-stderr "$BIN/score-ppl" --mode elbo --target reference -m "$D/m" "$T/pair"
    [ "$status" -ne 0 ]
    [[ $stderr == *"the difference of two bounds is not a bound"* ]]
    sed 's/"swa"/"rwkv9"/' "$D/m/config.json" > "$T/config.json"
    cp "$D/m/model.safetensors" "$D/m/tokenizer.json" "$T"
    run -65 --separate-stderr "$BIN/gen-ltm" -m "$T" "$T/prompts"
    [[ $stderr == *'mixer: expected "swa", "rwkv6" or "rwkv7", got "rwkv9"'* ]]
}

# train-lm of a mixer into a folder
mixed() { "$BIN/train-lm" -q --no-meta --arch ltm "${shape[@]}" --mixer "$1" --rank 8 "${@:3}" \
    --out "$2" "$D/corpus"; }

@test "rwkv6 and rwkv7 train at any thread count, resume, and record their mixer" {
    for mixer in rwkv6 rwkv7; do
        mixed $mixer "$T/$mixer" --report 5 > "$T/loss"
        conforms "$T/loss"
        jq -se --arg m $mixer '.[0].loss > .[-1].loss + 0.3 and all(.mixer == $m)' "$T/loss"
        jq -e --arg m $mixer '.mixer == $m and .low_rank_dim == 8 and
            (has("sliding_window") | not)' "$T/$mixer/config.json"
        mixed $mixer "$T/one" --steps 4 > "$T/loss"
        mixed $mixer "$T/three" --steps 4 --threads 3 > "$T/loss"
        cmp "$T/one/model.safetensors" "$T/three/model.safetensors"
        run -74 mixed $mixer "$T/again" --steps 4 --save 1 --report 3 -o /dev/full
        mixed $mixer "$T/again" --steps 4 > "$T/loss"
        cmp "$T/one/model.safetensors" "$T/again/model.safetensors"
        rm -r "$T/one" "$T/three" "$T/again"
    done
    run -64 --separate-stderr mixed rwkv6 "$T/two" --kv-heads 1
    [[ $stderr == *"expected as many key heads as heads"* ]]
}

@test "recurrent models: batch, cache and threads change no id; the state has one size" {
    for mixer in rwkv6 rwkv7; do
        mixed $mixer "$T/$mixer" --steps 8 > "$T/loss"
        gen=("$BIN/gen-ltm" -m "$T/$mixer" --ignore-eos --no-meta -q --threads 1)
        for how in "--vi-steps 3" "--vi-steps 3 --z-draw sample --refit 5" "--z prior"; do
            read -ra more <<< "$how --temperature 1 --max-new 30"
            "${gen[@]}" "${more[@]}" "$T/prompts" > "$T/a"
            "${gen[@]}" "${more[@]}" --batch 3 --threads 3 "$T/prompts" > "$T/b"
            "${gen[@]}" "${more[@]}" --cache off "$T/prompts" > "$T/c"
            cmp <(ids "$T/a") <(ids "$T/b")
            cmp <(ids "$T/a") <(ids "$T/c")
        done
        conforms "$T/a"
        # two layers of two heads of 16 and a row of 32, three latents a layer
        jq -se --arg m $mixer 'all(.mixer == $m and .state_bytes ==
            2 * 4 * (2 * 16 * 16 + 32) + 2 * 2 * 4 * 32 * 3)' "$T/a"
        "${gen[@]}" --z zero --max-new 200 <(sed -n 3p "$T/prompts") > "$T/long"
        "${gen[@]}" --z zero --max-new 100 <(sed -n 3p "$T/prompts") > "$T/short"
        jq -se '.[0].state_bytes == .[1].state_bytes and .[0].rows == 200 and
            .[0].memory.kv_bytes == .[1].memory.kv_bytes and
            all(.memory.planned_bytes == .memory.weights_bytes + .memory.kv_bytes +
                .memory.activations_bytes)' "$T/long" "$T/short"
        for form in recurrent chunked; do
            "${gen[@]}" --z zero --wkv $form "$T/prompts" > "$T/form"
            cmp <(ids "$T/form") <(ids <("${gen[@]}" --z zero "$T/prompts"))
            jq -se --arg f $form 'all(.wkv == $f)' "$T/form"
        done
        for how in "--z zero" "--vi-steps 3 --keep-latents"; do
            read -ra more <<< "$how"
            "${gen[@]}" "${more[@]}" --device ref "$T/prompts" > "$T/ref"
            "${gen[@]}" "${more[@]}" "$T/prompts" > "$T/a"
            cmp <(ids "$T/ref") <(ids "$T/a")
        done
        jq -se 'group_by(.id) | all([.[0].latents, .[1].latents] | transpose |
            all(.[0] - .[1] | fabs < 2e-3))' "$T/ref" "$T/a"
        "${gen[@]}" --quant int8 --vi-steps 2 "$T/prompts" > "$T/int8"
        jq -se 'all(.quant == "int8" and .status == "ok")' "$T/int8"
        head -n 2 "$D/corpus" | jq -c '{id: "t\(input_line_number)", text}' > "$T/texts"
        for mode in elbo iwae; do
            "$BIN/score-ppl" -q --no-meta --threads 1 -m "$T/$mixer" --mode $mode --samples 4 \
                --vi-steps 8 "$T/texts" > "$T/$mode"
            conforms "$T/$mode"
        done
        jq -n -e "$(jq -s 'map(select(.id).value) | add' "$T/elbo") >
            $(jq -s 'map(select(.id).value) | add' "$T/iwae")"
    done
}

@test "an option that the mixer does not support is refused" {
    run -64 --separate-stderr "${GEN[@]}" --wkv chunked "$T/prompts"
    [[ $stderr == *"--wkv: expected a model with time mixing, got '"*"whose mixer is swa"* ]]
    mixed rwkv7 "$T/m" --steps 2 > "$T/loss"
    try() {
        mkdir -p "$T/bad"
        jq "$1" "$T/m/config.json" > "$T/bad/config.json"
        cp "$T/m/model.safetensors" "$T/m/tokenizer.json" "$T/bad"
        run -65 --separate-stderr "$BIN/gen-ltm" -m "$T/bad" -q "$T/prompts"
        [[ $stderr == *"$2"* ]]
    }
    try '.sliding_window = 24' 'sliding_window: expected no such key with this mixer, got 24'
    try 'del(.low_rank_dim)' 'low_rank_dim'
    try 'del(.mixer)' 'mixer: expected'
    try '.low_rank_dim = 9' 'shape'
    try '.num_key_value_heads = 1' 'num_key_value_heads: expected as many as heads'
    try '.mixer = "swa" | del(.low_rank_dim)' 'sliding_window'
    try '.mixer = "rwkv6"' 'time_mix'
    try '.low_rank_dim = 1e9' 'low_rank_dim'
}

@test "stored latents give the same text; other files are refused" {
    "${GEN[@]}" --vi-steps 4 --keep-latents "$T/prompts" > "$T/kept"
    conforms "$T/kept"
    jq -se 'all(.latents | length == 2 * 3 * 32)' "$T/kept"
    z() { "${GEN[@]}" --z file --z-file "$1" "${@:2}" "$T/prompts"; }
    z "$T/kept" --keep-latents > "$T/given"
    conforms "$T/given"
    cmp <(ids "$T/kept") <(ids "$T/given")
    cmp <(jq -c .latents "$T/kept") <(jq -c .latents "$T/given")
    z "$T/kept" --batch 3 > "$T/three"
    cmp <(ids "$T/given") <(ids "$T/three")
    # other latents: another text, another point
    jq -c '.latents |= map(3 - 9 * .)' "$T/kept" > "$T/other"
    z "$T/other" > "$T/out"
    run -1 cmp -s <(ids "$T/given") <(ids "$T/out")
    jq -se '.[0].latent_file != .[3].latent_file and .[0].point != .[3].point and
        .[0].point == .[1].point and .[0].z == "file" and .[0].vi_steps == null' \
        "$T/given" "$T/out"
    bad() { # JQ-EXPRESSION WORDS: of the kept records, and what is said
        jq -c "$1" "$T/kept" > "$T/bad"
        run -65 --separate-stderr z "$T/bad"
        [[ $stderr == *"$2"* ]] || { echo "$stderr"; false; }
    }
    bad '.latents |= .[1:]' "latents: the model reads 192 values, got 191"
    bad '.latents += [0]' "got 193"
    bad '.latents[7] = "x"' 'latents[7]: expected a number from -1e+06 to 1e+06, got "x"'
    bad '.latents[7] = 1e300' "got 1e300"
    bad '.latents[0] = null' "got null"
    bad 'del(.id)' "id: expected"
    bad 'select(.id != "p2")' "no latents of prompt 'p2'"
    bad '., (.latents[0] += 1)' "id 'p1' has other latents in an earlier record"
    bad 'del(.latents)' "no latents: expected records of gen-ltm --keep-latents"
    head -c 2000 "$T/kept" > "$T/bad"
    run -65 z "$T/bad"
    run -66 z "$T/nothing"
    run -64 --separate-stderr "${GEN[@]}" --z file "$T/prompts"
    [[ $stderr == *"--z file and --z-file FILE: expected both or neither"* ]]
    run -64 "${GEN[@]}" --z-file "$T/kept" "$T/prompts"
}

@test "score-ppl: more fitting steps tighten the ELBO, and the IWAE is tighter than the ELBO" {
    head -n 4 "$D/corpus" | jq -c '{id: "t\(input_line_number)", text: "\(.text)\(.reference)"}' \
        > "$T/texts"
    score() { "$BIN/score-ppl" -q --no-meta --threads 1 -m "$D/m" "$@" "$T/texts"; }
    sum() { jq -s 'map(select(.id) | .value) | add' "$1"; }
    score --mode elbo --samples 8 --vi-steps 1 > "$T/one"
    score --mode elbo --samples 8 > "$T/elbo"
    score --mode iwae --samples 8 > "$T/iwae"
    conforms "$T/elbo"
    conforms "$T/iwae"
    jq -n -e "$(sum "$T/one") > $(sum "$T/elbo") and $(sum "$T/elbo") > $(sum "$T/iwae")"
    jq -se 'map(select(.id)) | length == 4 and all(.metric == "elbo_nats" and .value_se > 0 and
        .vi_steps == 64 and .elbo_samples == 8 and .ppl > 1)' "$T/elbo"
    jq -se 'map(select(.summary).metric) | sort == ["iwae_bits_per_byte", "iwae_ppl"]' "$T/iwae"
    score --mode elbo --samples 8 > "$T/again"
    cmp "$T/elbo" "$T/again"
}

@test "train-prior resumes after an interruption of its fitting or of its learning" {
    cp -r "$D/m" "$T/m"
    prior=("$BIN/train-prior" -m "$T/m" --count 40 --vi-steps 3 --rows 384 --max-len 96 --width 16
           --layers 2 --heads 2 --batch 8 --steps 40 --report 10 --bound-steps 20 --threads 1 -q
           --no-meta)
    "${prior[@]}" --out "$T/whole" "$D/corpus" > "$T/loss"
    run -74 --separate-stderr bash -c 'ulimit -f 16; exec "$@"' - "${prior[@]}" --save 1 \
        --out "$T/cut" "$D/corpus"
    [ -e "$T/cut.fits" ]
    [ ! -e "$T/cut.state" ]
    documents() { grep -ao '"documents":[0-9]*' "$T/cut.fits"; }
    [ "$(documents)" != '"documents":40' ]
    run -74 --separate-stderr "${prior[@]}" --save 4 --out "$T/cut" -o /dev/full "$D/corpus"
    [ "$(documents)" = '"documents":40' ]
    [ -e "$T/cut.state" ]
    for other in "--rate 0.1" "--vi-steps 4" "--seed 3" "--width 24" "--limit 50"; do
        # shellcheck disable=SC2086
        run -65 --separate-stderr "${prior[@]}" $other --out "$T/cut" "$D/corpus"
        [[ $stderr == *"cut.fits: belongs to a training with other settings: "* ]]
    done
    head -c 3000 "$T/cut.fits" > "$T/short.fits"
    run -65 "${prior[@]}" --out "$T/short" "$D/corpus"
    "${prior[@]}" --save 7 --threads 3 --out "$T/cut" "$D/corpus" > "$T/rest"
    cmp "$T/whole" "$T/cut"
    [ "$(jq .step "$T/rest" | head -n 1)" = 10 ]
    [ "$(tail -n 1 "$T/loss")" = "$(tail -n 1 "$T/rest")" ]
    [ ! -e "$T/cut.fits" ]
    [ ! -e "$T/cut.state" ]
}

@test "a prior of latents is trained, sampled with every solver, and checked when read" {
    cp -r "$D/m" "$T/m"
    run -66 --separate-stderr "${GEN[@]}" -m "$T/m" --z dit "$T/prompts"
    [[ $stderr == *prior.safetensors* ]]
    prior=("$BIN/train-prior" -m "$T/m" --count 40 --vi-steps 3 --rows 384 --max-len 96 --width 16
           --layers 2 --heads 2 --batch 8 --steps 40 --report 10 --bound-steps 20 --threads 1 -q)
    "${prior[@]}" "$D/corpus" > "$T/loss"
    conforms "$T/loss"
    jq -se 'map(select(.kind == "train")) | length == 4 and .[0].loss > .[-1].loss' "$T/loss"
    jq -se 'map(select(.kind == "prior")) | length == 1 and .[0].documents == 4 and
        .[0].kl_normal_nats > 0 and .[0].kl_prior_nats != null' "$T/loss"
    cp "$T/m/prior.safetensors" "$T/first"
    "${prior[@]}" --threads 3 "$D/corpus" > "$T/loss"
    cmp "$T/first" "$T/m/prior.safetensors"
    "${GEN[@]}" -m "$T/m" --z dit --solver ddim,dpmpp2m,edm,adaptive --evaluations 5 "$T/prompts" \
        > "$T/out"
    conforms "$T/out"
    jq -se 'length == 12 and all(.z == "dit" and .status == "ok" and .vi_steps == null and
        .evaluations == (if .solver == "adaptive" then null else 5 end) and .kl_nats == null) and
        (map(.solver) | unique | length == 4)' "$T/out"
    "${GEN[@]}" -m "$T/m" --z dit --batch 3 --solver dpmpp2m --evaluations 5 "$T/prompts" \
        > "$T/three"
    [ "$(ids "$T/three")" = "$(jq -c 'select(.solver == "dpmpp2m")' "$T/out" | ids)" ]
    head -n 3 "$D/corpus" | jq -c '{id: "t\(input_line_number)", text}' > "$T/texts"
    score=("$BIN/score-ppl" -q --threads 1 -m "$T/m" --samples 4 --vi-steps 8)
    "${score[@]}" --mode elbo "$T/texts" > "$T/normal"
    "${score[@]}" --mode elbo --prior dit "$T/texts" > "$T/learned"
    conforms "$T/learned"
    jq -se 'map(select(.id)) | length == 3 and all(.prior == "dit" and .metric == "elbo_nats" and
        .value > 0 and .value_se > 0)' "$T/learned"
    jq -se '.[0].checkpoint.files | any(.name == "prior.safetensors")' "$T/learned"
    jq -se 'map(select(.kind == "quality")) | all(has("prior") | not)' "$T/normal"
    cat "$T/normal" "$T/learned" | "$BIN/compare" --by prior --no-meta -q |
        jq -se 'map(select(.metric == "elbo_ppl")) | length == 1 and .[0].setting == "dit" and
            .[0].n == 3 and .[0].value > 0'
    run -64 --separate-stderr "${score[@]}" --mode iwae --prior dit "$T/texts"
    [[ $stderr == *"--prior dit: expected --mode elbo and a latent thought model"* ]]
    run -66 "${score[@]}" -m "$D/m" --mode elbo --prior dit "$T/texts"
    head -c 3000 "$T/first" > "$T/m/prior.safetensors"
    run -65 "${GEN[@]}" -m "$T/m" --z dit "$T/prompts"
    run -64 timeout 20 "$BIN/train-prior" -m "$T/m" --rows 64 --max-len 96 "$D/corpus"
    run -64 "$BIN/train-prior" -m "$T/m" --width 10 --heads 4 "$D/corpus"
    run -64 "$BIN/train-prior" -m data/models/llama-demo "$D/corpus"
}
