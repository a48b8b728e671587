# by-hand.awk - computes the network of width 2 with one layer, one head and a feed-forward of 1 for
# given ids: an independent check of the reference itself. Prints the logits of each position as a
# row. Variables: causal (0, 1), frequency (radians a position), ids ("0 1 2").
function norm(x, y, out, r) {
    r = 1 / sqrt((x * x + y * y) / 2 + 1e-5)
    out[1] = x * r; out[2] = y * r
}
function turned_1(x, y, a) { return x * cos(a) - y * sin(a) }
function turned_2(x, y, a) { return y * cos(a) + x * sin(a) }
BEGIN {
    split("1 0.5 -0.25 1 0.75 -1", embed, " ")                 # 3 x 2
    split("0.5 1 -1 0.25", wq, " "); split("1 -0.5 0.5 0.75", wk, " ")
    split("1 0 0.5 -1", wv, " "); split("0.5 0.25 -0.5 1", wo, " ")
    split("1 -0.5", gate, " "); split("0.5 1", up, " "); split("0.75 -0.25", down, " ")
    split("2 0 -1 1 0.5 -2", head, " ")                        # 3 x 2
    n = split(ids, id, " ")
    for (t = 1; t <= n; t++) {
        x[t, 1] = embed[2 * id[t] + 1]; x[t, 2] = embed[2 * id[t] + 2]
        norm(x[t, 1], x[t, 2], h)
        a = (t - 1) * frequency
        p = wq[1] * h[1] + wq[2] * h[2]; r = wq[3] * h[1] + wq[4] * h[2]
        q[t, 1] = turned_1(p, r, a); q[t, 2] = turned_2(p, r, a)
        p = wk[1] * h[1] + wk[2] * h[2]; r = wk[3] * h[1] + wk[4] * h[2]
        k[t, 1] = turned_1(p, r, a); k[t, 2] = turned_2(p, r, a)
        v[t, 1] = wv[1] * h[1] + wv[2] * h[2]; v[t, 2] = wv[3] * h[1] + wv[4] * h[2]
    }
    for (t = 1; t <= n; t++) {
        total = m1 = m2 = 0
        for (s = 1; s <= (causal ? t : n); s++) {
            w = exp((q[t, 1] * k[s, 1] + q[t, 2] * k[s, 2]) / sqrt(2))
            total += w; m1 += w * v[s, 1]; m2 += w * v[s, 2]
        }
        m1 /= total; m2 /= total
        y1 = x[t, 1] + wo[1] * m1 + wo[2] * m2; y2 = x[t, 2] + wo[3] * m1 + wo[4] * m2
        norm(y1, y2, h)
        g = gate[1] * h[1] + gate[2] * h[2]
        f = g / (1 + exp(-g)) * (up[1] * h[1] + up[2] * h[2])
        norm(y1 + down[1] * f, y2 + down[2] * f, h)
        for (i = 0; i < 3; i++)
            printf "%.9f%s", head[2 * i + 1] * h[1] + head[2 * i + 2] * h[2], i < 2 ? " " : "\n"
    }
}
