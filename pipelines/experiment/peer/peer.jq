# peer.jq - prints a line for each point of another engine, and its ratios to our LLaMA.
def digits: if . == null then "-" elif . < 10 then . * 100 | round / 100 else round end;
def ms: if . == null then "-" else . / 1e6 | digits end;
(map(select(.kind == "metric" and .stack)) | group_by(.config)[] |
    (INDEX(.metric)) as $m |
    "\(.[0].config): \($m.e2e_ns.value | ms) ms an answer, first token after "
    + "\($m.ttft_ns.value | ms) ms, \($m.itl_ns.value | ms) ms a token, "
    + "\($m.output_tokens_per_s.value | digits) tokens/s, "
    + "goodput \($m.goodput_per_s.value | digits) of "
    + "\($m.requests_per_s.value | digits) requests/s"),
(.[] | select(.kind == "quality" and .summary and .stack) |
    "\(.config): \(.metric) \(.value | digits)"),
(.[] | select(.kind == "comparison" and .stack and .metric == "e2e_ns") |
    "another stack / this one (two programs): \(.config) takes \(.value | digits) times as long as "
    + "\(.base_config) [\(.lo | digits), \(.hi | digits)]"),
"Their software stack differs from that of LLaDA and LLaMA here: no answer or figure of the page "
+ "holds them. make report PAGE=peer with the same URL= and MODEL= shows them in a section."
