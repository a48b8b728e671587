#!/usr/bin/env bats
# schedule: the points and launches of a run, extended schedules, refusals.
bats_require_minimum_version 1.5.0
load conforms
load tool

setup() { enter; }

schedule() { "$BIN/schedule" "$@"; }

@test "lists and settings that contradict each other are refused" {
    fails 64 "expected no files, got 'same'" schedule same
    fails 64 "must be a multiple of block-length 32" schedule --gen-length 48
    fails 64 "steps 1 must be a multiple" schedule --steps 1,8
    fails 64 "--batch" schedule --batch 1,,2
}

@test "a schedule has pairs of one number and holds each point once a round" {
    schedule --steps 2,4,8 --batch 1,4 --launches 4 --rounds 3 --seed 5 > got
    conforms got
    [ "$(jq -r 'select(.kind == "launch").system' got | paste -sd ' ')" = \
      "llada llama llada llama llada llama llada llama" ]
    [ "$(jq -r 'select(.kind == "launch").launch' got | paste -sd ' ')" = "0 0 1 1 2 2 3 3" ]
    jq -e -s 'map(select(.system == "llada") | .points | group_by(.round)
              | length == 3 and all(.[]; length == 6 and (map(del(.round)) | unique | length) == 6))
              | all' got
    [ "$(jq -c 'select(.system == "llada") | .points[] | del(.round) | [.steps, .batch]' got |
         paste -sd ' ' | tr ' ' '\n' | head -6 | sort)" = \
      "$(jq -nc '[2,4,8][] as $s | [1,4][] as $b | [$s, $b]' | sort)" ]
    [ "$(jq -c 'select(.system == "llada") | .points | map([.steps, .batch])' got | sort -u |
         wc -l)" -gt 1 ]
    schedule --steps 2,4,8 --batch 1,4 --launches 4 --rounds 3 --seed 5 --no-meta |
        cmp - <(grep '"kind":"launch"' got)
    [ "$(jq -r 'select(.kind == "launch").seed' got | sort -u | wc -l)" -eq 4 ]
    jq -se 'map(select(.kind == "launch")) | all(.units == 18)' got
}

@test "a list for a setting that all systems share counts for each of them" {
    for s in llama llada ltm endpoint; do
        schedule --systems "$s" --steps 4 --batch 1,8 --contract fixed --launches 1 --no-meta > got
        conforms got
        [ "$(jq -c '[.points[] | [.batch, .contract]] | sort' got)" = \
            '[[1,"fixed"],[8,"fixed"]]' ]
    done
}

@test "three systems are in each pair, each along its own axis" {
    schedule --systems llada,llama,ltm --launches 4 --steps 2,4 --vi-steps 0,8 --no-meta > got
    conforms got
    [ "$(jq -r .system got | paste -sd ' ')" = "llada llama ltm llada llama ltm llada llama \
ltm llada llama ltm" ]
    jq -se 'map(select(.system == "ltm")) | length == 4 and all(.points | length == 2 and
        (map(.vi_steps) | sort == [0, 8]) and all(.max_new == 64 and .steps == null))' got
    jq -se 'map(select(.system != "ltm") | .points[]) | all(.vi_steps == null)' got
    for wrong in llada,llada llama,gpt "" ,; do
        run -64 --separate-stderr "$BIN/schedule" --systems "$wrong"
        [[ $stderr == *"--systems: expected llada, llama and ltm, each at most once"* ]]
    done
}

@test "a schedule is extended by new points and a bridge" {
    schedule --steps 2,8,32 --launches 3 --no-meta > old
    schedule --steps 2,4,8,32 --launches 3 --no-meta --previous old > new
    cmp old <(head -6 new)
    [ "$(tail -n +7 new | jq -r '"\(.launch) \(.system)"' | paste -sd ,)" = \
      "3 llada,3 llama,4 llada,4 llama,5 llada,5 llama" ]
    tail -n +7 new | jq -e -s 'map(select(.system == "llada")) | all(.[];
        ([.points[] | select(.bridge | not) | .steps] == [4]) and
        ([.points[] | select(.bridge) | .steps] | length == 2 and
            all(. == 2 or . == 8 or . == 32)))'
    schedule --steps 2,4,8,32 --launches 3 --no-meta --previous new | cmp - new
    schedule --steps 2 --batch 1,2 --launches 1 --no-meta --previous old | tail -n +7 > both
    [ "$(jq -r .system both | paste -sd ' ')" = "llada llama" ]
    conforms new
    echo '{"kind":"metric"}' > none
    fails 65 "no launch records" schedule --previous none
    for number in '"x"' -1 9223372036854775807; do
        echo '{"kind":"launch","launch":'"$number"',"system":"llada","points":[]}' > odd
        fails 65 "launch (a number up to" schedule --previous odd
    done
}
