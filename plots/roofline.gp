# roofline.gp - operations a second against operations per byte, below the roofs of this machine.
eval begin(width_cm > 10 ? 9 : 6.5)
set logscale xy
set xlabel 'arithmetic intensity (FLOP per byte)'
set ylabel 'GFLOP/s'
set key bottom right Left reverse samplen 1
stats $points using 1 nooutput name 'x'
stats $points using 2 nooutput name 'y'
array kind_title[4] = ['LLaDA', 'LLaMA', 'latent thoughts', 'kernel']
kinds_there = ''
do for [k = 0:3] {
    stats $points using ($3 == k ? 1 : 0) nooutput name 'there'
    if (there_max > 0) {kinds_there = kinds_there . sprintf(' %d', k)}
}
named = !narrow
roof_most = 0; knee_lo = x_min; knee_hi = x_max
do for [i=1:roof_count] {
    knee = roof_flops[i] / roof_bytes[i]
    knee_lo = knee < knee_lo ? knee : knee_lo
    knee_hi = knee > knee_hi ? knee : knee_hi
    roof_most = roof_flops[i] > roof_most ? roof_flops[i] : roof_most
}
x_lo = knee_lo / 3
x_hi = knee_hi * 8
set xrange [x_lo:x_hi]
set yrange [y_min / 3:(roof_most > y_max ? roof_most : y_max) * 2]
roof(i, x) = roof_bytes[i] * x < roof_flops[i] ? roof_bytes[i] * x : roof_flops[i]
do for [i=1:roof_count] {
    set label i sprintf('%s %.4g GFLOP/s', roof_unit[i], roof_flops[i]) at x_hi, roof_flops[i] \
        right offset -1, 0.6 textcolor rgb grey
}
if (roof_count > 0) {
    # No point can be above the slope, so the label is there.
    foot = knee_lo / 1.7
    set label roof_count + 1 sprintf('%.3g GB/s', roof_bytes[1]) at foot, roof(1, foot) right \
        offset -1, 0.6 textcolor rgb grey
}
set samples 400
plot for [i=1:roof_count] roof(i, x) with lines linecolor rgb grey linewidth 1.4 notitle, \
    $points using 1:2:(point($3)):(rgb($3)) with points pointtype variable \
        pointsize (x_records > 20 ? 0.5 : 0.9) linecolor rgb variable notitle, \
    for [i = 1:named] $points using 1:2:4:(rgb($3)) every 2::0 with labels left \
        offset 1, -0.6 textcolor rgb variable notitle, \
    for [i = 1:named] $points using 1:2:4:(rgb($3)) every 2::(x_records > 1) with labels left \
        offset 1, 0.6 \
        textcolor rgb variable notitle, \
    for [k in kinds_there] keyentry with points pointtype point(k) pointsize 0.9 \
        linecolor rgb rgb(k) title kind_title[k + 1], \
    for [i = 1:tips(1)] $tips index 0 using 1:2:5 @tip
unset output
