# options.jq - turns data/ablation.ndjson into variables of make: option_NAMES, and the systems and
# flags of each option. Options whose effects other experiments measure are left out. Characters
# that make or a shell would interpret are an error. Run with -nr.
def plain: if test("^[A-Za-z0-9 ._:,=+-]*$") then . else
    "data/ablation.ndjson: '\(.)': expected letters, digits and . _ : , = + -\n" | halt_error(65)
    end;
inputs | select(.kind == "option" and .from == null)
| .option as $name
| if $name | test("^[a-z0-9-]+$") then . else
    "data/ablation.ndjson: option '\($name)': expected letters, digits and -\n" | halt_error(65) end
| "option_NAMES += \($name)",
  "option_SYSTEMS_\($name) := \(.systems // ["llada", "llama"] | join(" ") | plain)",
  "option_FLAGS_\($name) := \(.flags | plain)",
  "option_PACK_\($name) := \(.pack // "" | plain)",
  "option_NEEDS_\($name) := \(.needs // "" | plain)",
  "option_SCORE_\($name) := \(.score_flags // "" | plain)",
  (.against | values | "option_AGAINST += \(plain)")
