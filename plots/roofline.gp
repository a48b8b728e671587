# roofline.gp - arithmetic reached against arithmetic per byte, under this machine's own roof.
eval begin(width_cm > 10 ? 9 : 6.5)
set logscale xy
set xlabel 'arithmetic intensity (FLOP per byte)'
set ylabel 'GFLOP/s'
unset key
stats $points using 1 nooutput name 'x'
stats $points using 2 nooutput name 'y'
knee = roof_flops / roof_bytes
x_lo = (ok(knee) && knee < x_min ? knee : x_min) / 3
x_hi = (ok(knee) && knee > x_max ? knee : x_max) * 8
y_hi = (ok(roof_flops) && roof_flops > y_max ? roof_flops : y_max) * 2
set xrange [x_lo:x_hi]
set yrange [y_min / 3:y_hi]
roof(x) = roof_bytes * x < roof_flops ? roof_bytes * x : roof_flops
if (ok(knee)) {
    set label 1 sprintf('%.3g GFLOP/s', roof_flops) at x_hi, roof_flops right offset -1, 0.6 \
        textcolor rgb grey
    set label 2 sprintf('%.3g GB/s', roof_bytes) at x_lo * 1.6, roof(x_lo * 1.6) left \
        offset 1.5, 0 textcolor rgb grey
}
set samples 400
plot roof(x) with lines linecolor rgb grey linewidth 1.4, \
    $points using 1:2:(point($3)):(rgb($3)) with points pointtype variable pointsize 0.9 \
        linecolor rgb variable, \
    $points using 1:2:4:(rgb($3)) every 2::0 with labels left offset 1, -0.6 \
        textcolor rgb variable, \
    $points using 1:2:4:(rgb($3)) every 2::(x_records > 1) with labels left offset 1, 0.6 \
        textcolor rgb variable
unset output
