# fitness.jq - judges whether this machine is quiet enough to measure on. Writes one record from
# facts given as arguments. $gpu: a line of nvidia-smi, empty without a GPU; $others: a line for
# each process that computes on the GPU. Bits of the driver give the reason for lowered clocks: 8
# and 128 hardware, 32 and 64 heat. A power cap is normal on these cards and no reason against
# measuring.
def number: try tonumber catch null;
def low_byte: ascii_downcase | explode | .[-2:]
    | map(if . >= 97 then . - 87 else . - 48 end) | .[0] * 16 + .[1];
def bit($b): (. / $b | floor) % 2 == 1;
def state: if $gpu == "" then null else ($gpu | split("\n")[0] | split(", ")) as $f
    | {name: $f[0], driver: $f[1], temperature_c: ($f[2] | number), used_mib: ($f[3] | number),
       total_mib: ($f[4] | number), sm_mhz: ($f[5] | number), sm_max_mhz: ($f[6] | number),
       lowered: (($f[7] // "") | if test("^0x[0-9a-fA-F]{2,}$") then low_byte
                 | [if bit(8) then "hw_slowdown" else empty end,
                    if bit(32) then "sw_thermal" else empty end,
                    if bit(64) then "hw_thermal" else empty end,
                    if bit(128) then "power_brake" else empty end]
                 else null end)}
    end;
($load | tonumber) as $busy
| ($cores | tonumber) as $n
| ($others | split("\n") | map(select(test("^[0-9]")))) as $pids
| state as $card
| [
    (if $busy > 0.05
     then "\($busy) of \($n) cores in use: something else is running" else empty end),
    (if $governor != "" and $governor != "performance"
     then "cpu governor is \($governor)" else empty end),
    (if $pids != [] then "other processes on the GPU: \($pids | join(" "))" else empty end),
    (if $pids == [] and $card.used_mib != null and $card.used_mib > 1024
     then "\($card.used_mib) MiB of the GPU are in use" else empty end),
    (if ($card.lowered // []) != []
     then "clocks of the GPU are lowered: \($card.lowered | join(" "))" else empty end)
  ] as $reasons
| {schema: "crossover/1", kind: "fitness", run: "local", machine_fingerprint: $fp, cores: $n,
   load: $busy, governor: (if $governor == "" then null else $governor end), gpu: $card,
   fit: ($reasons | length == 0), reasons: $reasons,
   text: "machine \($fp): \($n) cores, \($busy) in use\(
       if $card then ", \($card.name) at \($card.temperature_c) °C" else "" end), \(
       if $reasons == [] then "fit to measure" else "NOT FIT: " + ($reasons | join("; ")) end)"}
