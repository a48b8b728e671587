# schema.jq - checks records against data/record.schema.json: prints what is wrong, exits non-zero.
#
#   jq -n --slurpfile schema data/record.schema.json -f tests/schema.jq FILE...
#
# A record is checked against the definition of its kind; unknown kinds only need the envelope.
# Knows the words of JSON Schema that the file uses, and refuses a word that it does not know, so
# that no rule there is silently without effect. Written for jq 1.6.

def words: ["$ref", "type", "enum", "pattern", "minimum", "maximum", "minItems", "required",
            "properties", "items", "anyOf", "description", "$schema", "title", "definitions"];

def is_type($t):
  if $t == "integer" then type == "number" and . == floor
  else type == $t
  end;

# A value in, texts of violations out.
def violations($s; $path):
  . as $v
  | ($s | keys_unsorted - words | .[] | error("schema.jq does not know the word " + .)),
    (if $s["$ref"] then
       ($schema[0].definitions[$s["$ref"] | ltrimstr("#/definitions/")]) as $d
       | if $d then violations($d; $path) else error("no definition " + $s["$ref"]) end
     else empty end),
    (if $s.type and ([$s.type] | flatten | any(. as $t | $v | is_type($t)) | not) then
       "\($path): expected \($s.type | tojson), got \($v | tojson | .[0:60])"
     else empty end),
    (if $s.enum and ($s.enum | index([$v]) == null) then
       "\($path): expected one of \($s.enum | tojson), got \($v | tojson | .[0:60])"
     else empty end),
    (if $s.pattern and ($v | type) == "string" and ($v | test($s.pattern) | not) then
       "\($path): expected /\($s.pattern)/, got \($v | tojson | .[0:60])"
     else empty end),
    (if ($s | has("minimum")) and ($v | type) == "number" and $v < $s.minimum then
       "\($path): expected at least \($s.minimum), got \($v)" else empty end),
    (if ($s | has("maximum")) and ($v | type) == "number" and $v > $s.maximum then
       "\($path): expected at most \($s.maximum), got \($v)" else empty end),
    (if $s.minItems and ($v | type) == "array" and ($v | length) < $s.minItems then
       "\($path): expected at least \($s.minItems) items, got \($v | length)" else empty end),
    (if $s.anyOf and ([$s.anyOf[] | . as $one | [$v | violations($one; $path)] | length == 0]
                      | any | not) then
       "\($path): fits none of the forms of \($s.description // ($s.anyOf | tojson | .[0:90]))"
     else empty end),
    (if ($v | type) == "object" then
       ($s.required // [] | .[] | . as $key | select($v | has($key) | not)
        | "\($path): \($key) is missing"),
       ($s.properties // {} | to_entries[] | . as $p | select($v | has($p.key))
        | . as $p | $v[$p.key] | violations($p.value; "\($path).\($p.key)"))
     else empty end),
    (if ($v | type) == "array" and $s.items then
       range($v | length) as $i | $v[$i] | violations($s.items; "\($path)[\($i)]")
     else empty end);

def record_violations:
  if type != "object" then "expected an object, got \(type)"
  elif has("kind") then
    violations($schema[0].definitions.envelope; ""),
    ($schema[0].definitions[.kind | tostring] as $d
     | if $d then violations($d; "") else empty end)
  else violations($schema[0].definitions.bare_prompt; "")
  end;

def all_violations:
  foreach inputs as $record (0; . + 1;
    . as $n | $record
    | ("record \($n) (\(if type == "object" then .kind // "no kind" else type end))") as $name
    | record_violations | $name + " " + .);

[all_violations] | if length > 0 then (join("\n") + "\n") | halt_error(1) else empty end
