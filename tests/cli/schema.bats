#!/usr/bin/env bats
# The record schema: sound records pass, and the checker finds planted faults.
load conforms

setup()
{
    ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_TEST_TMPDIR"
}

faulty() { # WORDS RECORD: the record is refused with the words
    echo "$2" > record
    run conforms record
    echo "$output"
    [ "$status" -ne 0 ] && [[ "$output" == *"$1"* ]]
}

E='"schema":"crossover/1","run":"r"'

@test "sound records pass the schema" {
    cat > records <<END
{"id":"p1","text":"a prompt without envelope"}
{$E,"kind":"prompt","id":"p","messages":[{"role":"user","content":"x"}],"own":1}
{$E,"kind":"a_kind_to_come","x":1}
{$E,"kind":"error","code":"bad_data","message":"m","where":"w"}
{$E,"kind":"generation","id":"p","config":"c","model":"m","arch":"llada","batch":1,\
"phase":"timed","status":"oom","stop":null,"e2e_ns":null,"token_ids":[1,2]}
{$E,"kind":"quality","config":"c","model":"m","id":"p","metric":"accuracy","value":1,\
"direction":"higher"}
{$E,"kind":"quality","config":"c","model":"m","summary":true,"n":3,"metric":"accuracy",\
"value":null,"value_reason":"random weights","direction":"higher"}
END
    conforms records
}

@test "planted faults in records are found" {
    faulty "is no object" '[1]'
    faulty "schema: " '{"schema":"crossover/2","kind":"x","run":"r"}'
    faulty "run: is missing" '{"schema":"crossover/1","kind":"x"}'
    faulty "id: is missing" '{"text":"x"}'
    faulty "none of the forms" '{"id":"p"}'
    faulty "prompt_ids: " '{"id":"p","prompt_ids":[1,-1]}'
    faulty "prompt_ids: " '{"id":"p","prompt_ids":[1.5]}'
    faulty "content: is missing" '{"id":"p","messages":[{"role":"user"}]}'
    faulty "id: " '{"id":7,"text":"x"}'
    faulty "code: " "{$E,\"kind\":\"error\",\"code\":\"A B\",\"message\":\"m\",\"where\":\"w\"}"
    faulty "sha256: " "{$E,\"kind\":\"end\",\"records\":1,\"failed\":0,\"sha256\":\"ab\",\
\"status\":\"ok\"}"
    faulty "status: " "{$E,\"kind\":\"end\",\"records\":1,\"failed\":0,\
\"sha256\":\"$(printf '%064d' 0)\",\"status\":\"odd\"}"
    faulty "points: has too few items" "{$E,\"kind\":\"launch\",\"launch\":0,\
\"system\":\"llada\",\"seed\":1,\"rounds\":1,\"points\":[]}"
    faulty "none of the forms" "{$E,\"kind\":\"quality\",\"config\":\"c\",\"model\":\"m\",\
\"id\":\"p\",\"metric\":\"accuracy\",\"value\":null,\"direction\":\"higher\"}"
    faulty "prompt_ids: is out of range" '{"id":"p","prompt_ids":[3000000000]}'
}

@test "a keyword of the schema that the checker does not know is an error" {
    jq '.definitions.envelope.propertyNames = {}' "$ROOT/data/record.schema.json" > other.json
    echo '{"schema":"crossover/1","kind":"x","run":"r"}' > record
    run "${TESTBIN:-$ROOT/build/tests}/fixtures/conforms" other.json record
    [ "$status" -ne 0 ] && [[ "$output" == *propertyNames* ]]
}

@test "a reference to no definition is an error, and so is a record that ends early" {
    local conforms=${TESTBIN:-$ROOT/build/tests}/fixtures/conforms
    jq '.definitions.envelope."$ref" = "#/definitions/none"' "$ROOT/data/record.schema.json" \
        > other.json
    echo '{"schema":"crossover/1","kind":"x","run":"r"}' > record
    run "$conforms" other.json record
    [ "$status" -ne 0 ] && [[ "$output" == *definitions/none* ]]
    printf '%s' '{"schema":"crossover/1","kind":"x","run":"r"}{"kind":"me' > record
    run "$conforms" "$ROOT/data/record.schema.json" record
    [ "$status" -ne 0 ]
}

@test "the fixtures are sound" {
    conforms "$ROOT"/tests/fixtures/*.ndjson
}
