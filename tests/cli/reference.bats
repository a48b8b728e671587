#!/usr/bin/env bats
# Tests the float64 reference itself: against a network written out by hand in awk, and its sampler
# against its own logits.

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    . tests/reference/build.sh
}

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
}

ask() { "$REFERENCE" <<< "$1"; }

# hand ARCH [option...]: makes the checkpoint of tests/reference/by-hand.awk in $T/hand
hand() {
    local arch=$1 b=model.layers.0. q=self_attn.q_proj k=self_attn.k_proj v=self_attn.v_proj
    shift
    cat > "$T/values.json" << END
{"model.embed_tokens.weight": [1, 0.5, -0.25, 1, 0.75, -1],
 "${b}input_layernorm.weight": [1, 1], "${b}post_attention_layernorm.weight": [1, 1],
 "${b}$q.weight": [0.5, 1, -1, 0.25], "${b}$k.weight": [1, -0.5, 0.5, 0.75],
 "${b}$v.weight": [1, 0, 0.5, -1], "${b}self_attn.o_proj.weight": [0.5, 0.25, -0.5, 1],
 "${b}mlp.gate_proj.weight": [1, -0.5], "${b}mlp.up_proj.weight": [0.5, 1],
 "${b}mlp.down_proj.weight": [0.75, -0.25],
 "model.norm.weight": [1, 1], "lm_head.weight": [2, 0, -1, 1, 0.5, -2]}
END
    "$MAKE_CHECKPOINT" --arch "$arch" --hf-names --width 2 --heads 1 --layers 1 --ffn 1 --vocab 3 \
        --values "$T/values.json" "$@" "$T/hand"
}

# same_as_hand CAUSAL FREQUENCY: tests that the logits of 0 1 2 1 agree to 1e-8
same_as_hand() {
    ask "{\"op\":\"logits\",\"model\":\"$T/hand\",\"ids\":[0,1,2,1]}" |
        jq -r '.logits[] | map(tostring) | join(" ")' > "$T/got"
    awk -v causal="$1" -v frequency="$2" -v ids="0 1 2 1" -f tests/reference/by-hand.awk \
        > "$T/expected"
    [ "$(wc -l < "$T/got")" -eq 4 ]
    paste -d ' ' "$T/got" "$T/expected" |
        awk '{ for (i = 1; i <= 3; i++) { d = $i - $(i + 3); if (d * d > 1e-16) exit 1 } }'
}

@test "causal logits are those worked out by hand" {
    hand llama
    same_as_hand 1 1
    run same_as_hand 0 1
    [ "$status" -ne 0 ]
}

@test "logits under a full mask are those worked out by hand" {
    hand llada
    same_as_hand 0 1
}

@test "logits worked out by hand are exact in BF16, in F16 and over shards" {
    hand llama --dtype BF16 --shards 3
    same_as_hand 1 1
    rm -r "$T/hand"
    hand llama --dtype F16
    same_as_hand 1 1
}

@test "rope scaling of type llama3 stretches long waves, keeps short ones and blends others" {
    hand llama --rope-llama3 2,1,4,4          # wave length 2 pi > 4: half the frequency
    same_as_hand 1 0.5
    hand llama --rope-llama3 2,1,4,40         # 2 pi < 10: kept
    same_as_hand 1 1
    hand llama --rope-llama3 2,1,4,12 --rope-parameters
    same_as_hand 1 "$(awk 'BEGIN { s = (12 / (2 * atan2(0, -1)) - 1) / 3
                                   printf "%.12f", (1 - s) / 2 + s }')"
}

@test "the likelihood is the log of the softmax, from the second id on" {
    hand llama
    expected=$(awk -v causal=1 -v frequency=1 -v ids="0 1 2" -f tests/reference/by-hand.awk |
        awk '{ l[NR] = -log(exp($(2 + (NR == 2))) / (exp($1) + exp($2) + exp($3))) }
             END { printf "%.7f", l[1] + l[2] }')
    ask "{\"op\":\"score\",\"model\":\"$T/hand\",\"ids\":[0,1,2]}" |
        jq -e --argjson x "$expected" '.scored_tokens == 2 and (.nll - $x | fabs) < 1e-6'
}

@test "masked positions are seen as masks and scored by their ids" {
    hand llada
    expected=$(awk -v causal=0 -v frequency=1 -v ids="0 2 1 2" -f tests/reference/by-hand.awk |
        awk 'NR == 2 { a = -log(exp($1) / (exp($1) + exp($2) + exp($3))) }
             NR == 4 { b = -log(exp($2) / (exp($1) + exp($2) + exp($3))) }
             END { printf "%.7f", a + b }')
    ask "{\"op\":\"masked\",\"model\":\"$T/hand\",\"ids\":[0,0,1,1],\"masked\":[1,3],\"mask\":2}" |
        jq -e --argjson x "$expected" '(.nll - $x | fabs) < 1e-6'
}

@test "greedy generation takes the best logit of the last row and stops at a stop id" {
    "$MAKE_CHECKPOINT" --kv-heads 2 --tied "$T/m"
    got=$(ask "{\"op\":\"generate\",\"model\":\"$T/m\",\"ids\":[5,6,7],\"max_new\":6}")
    ids='[5,6,7]'
    for step in 0 1 2 3 4 5; do
        next=$(ask "{\"op\":\"logits\",\"model\":\"$T/m\",\"ids\":$ids}" |
            jq '.logits[-1] | index(max)')
        [ "$next" = "$(jq ".ids[$step]" <<< "$got")" ]
        ids=$(jq -c ". + [$next]" <<< "$ids")
    done
    stop=$(jq '.ids[3]' <<< "$got")
    ask "{\"op\":\"generate\",\"model\":\"$T/m\",\"ids\":[5,6,7],\"max_new\":6,\"stop\":[$stop]}" |
        jq -e --argjson g "$got" '.ids == $g.ids[:([$g.ids[] == '"$stop"'] | index(true))]'
}

@test "the remaining steps of a block go to its first steps, and blocks are done in order" {
    "$MAKE_CHECKPOINT" --arch llada "$T/m"
    ask "{\"op\":\"diffuse\",\"model\":\"$T/m\",\"ids\":[5,6,7],\"gen_length\":24,
          \"block_length\":8,\"steps\":9}" > "$T/out"
    jq -e '[.commits[] | length] == [3,3,2,3,3,2,3,3,2]' "$T/out"
    jq -e '[.commits[:3][][]] | sort == [range(0; 8)]' "$T/out"
    jq -e '[.commits[6:][][]] | sort == [range(16; 24)]' "$T/out"
    ask "{\"op\":\"diffuse\",\"model\":\"$T/m\",\"ids\":[5,6,7],\"gen_length\":4,\"steps\":6}" |
        jq -e '[.commits[] | length] == [1,1,1,1,0,0]'
}

@test "with guidance a step commits the most confident position of the guided logits" {
    "$MAKE_CHECKPOINT" --arch llada --seed 4 "$T/m"
    ask "{\"op\":\"diffuse\",\"model\":\"$T/m\",\"ids\":[5,6],\"gen_length\":4,\"cfg_scale\":1.5}" \
        > "$T/out"
    ask "{\"op\":\"logits\",\"model\":\"$T/m\",\"ids\":[5,6,258,258,258,258]}" > "$T/c"
    ask "{\"op\":\"logits\",\"model\":\"$T/m\",\"ids\":[258,258,258,258,258,258]}" > "$T/u"
    jq -n --slurpfile c "$T/c" --slurpfile u "$T/u" '
        [range(2; 6) as $t |
         [range(0; 264) | $c[0].logits[$t][.] * 2.5 - $u[0].logits[$t][.] * 1.5] |
         {t: ($t - 2), id: index(max), p: ((max | exp) / (map(exp) | add))}] | max_by(.p)' \
        > "$T/best"
    jq -e --slurpfile b "$T/best" '.commits[0] == [$b[0].t] and .ids[$b[0].t] == $b[0].id' "$T/out"
}

@test "with the EOS options an end token is never written, or is written last" {
    "$MAKE_CHECKPOINT" --arch llada --seed 2 "$T/m"
    plain=$(ask "{\"op\":\"diffuse\",\"model\":\"$T/m\",\"ids\":[5,6,7],\"gen_length\":8}")
    first=$(jq '.ids[.commits[0][0]]' <<< "$plain")
    request="{\"op\":\"diffuse\",\"model\":\"$T/m\",\"ids\":[5,6,7],\"gen_length\":8,\"eos\":$first"
    ask "$request,\"logits_eos_inf\":true}" | jq -e --argjson e "$first" '.ids | index($e) == null'
    ask "$request,\"confidence_eos_eot_inf\":true}" |
        jq -e --argjson p "$plain" '.commits[0] != $p.commits[0]'
}
