// Small plots over one time axis, on canvas. Our own: what is asked for is lines, a band and a crosshair, a few hundred
// points each; the smallest library in Debian is larger than the whole page.

import {h, style, text} from './dom.js';
import {when} from './format.js';

const COLORS = ['--accent', '--running', '--waiting', '--failed', '--ok'];
const GAP_STEPS = 3; // a longer hole than so many steps is drawn as a hole

// One crosshair over all plots of a group.
export function plotGroup() {
    const plots = new Set();
    return {
        plots,
        at: null,
        point(t) {
            this.at = t;
            this.onpoint?.(t);
            for (const plot of plots) plot.draw();
        },
    };
}

// series: [{name, color}] with value(sample, i) → number or null; band: [low, high] indices of series drawn as a band.
// words(number) makes text of a value. The value now stands beside in large digits. dots: no lines, for what happens
// now and then. isSum: the sum of all series stands beside.
export function plot({
    title,
    series,
    value,
    words = String,
    group,
    band = null,
    href = null,
    dots = false,
    isSum = false,
}) {
    const canvas = h('canvas', {role: 'img', 'aria-label': title});
    const now = h('b.now');
    const legend = h(
        'span.legend',
        series.length > 1
            ? series.map((one, i) =>
                  h('span', h(`i.dot.${(one.color ?? COLORS[i % COLORS.length]).slice(2)}`), one.name, ' '),
              )
            : null,
    );
    const element = h('figure.plot', h('figcaption', href ? h('a', {href}, title) : title, ' ', now), canvas, legend);
    let samples = [],
        from = 0,
        to = 1;

    // Numbers of samples that follow each other without a hole.
    function runs(all, has) {
        const step = all.length > 1 ? Math.max(1000, (to - from) / canvas.clientWidth) : 1000;
        const found = [];
        let last = null;
        all.forEach((sample, k) => {
            if (!has(k)) {
                last = null;
                return;
            }
            const isNext = last !== null && sample.t - last <= Math.max(step * GAP_STEPS, sample.step ?? 0) * 4;
            if (isNext) found.at(-1).push(k);
            else found.push([k]);
            last = sample.t;
        });
        return found;
    }
    function draw() {
        const width = canvas.clientWidth,
            height = canvas.clientHeight,
            ratio = devicePixelRatio || 1;
        if (!width || !height) return;
        if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
            canvas.width = Math.round(width * ratio);
            canvas.height = Math.round(height * ratio);
        }
        const pen = canvas.getContext('2d');
        pen.setTransform(ratio, 0, 0, ratio, 0, 0);
        pen.clearRect(0, 0, width, height);
        const lines = series.map((one, i) => samples.map(sample => Number(value(sample, i) ?? NaN)));
        let most = 1e-9; // by a loop: a day has more numbers than a call takes arguments
        for (const line of lines) for (const one of line) if (one > most) most = one;
        const x = t => ((t - from) / (to - from)) * width;
        const y = v => height - 1 - (v / most) * (height - 14);
        pen.strokeStyle = style('--line');
        pen.beginPath();
        pen.moveTo(0, height - 0.5);
        pen.lineTo(width, height - 0.5);
        pen.stroke();
        pen.fillStyle = style('--faint');
        pen.font = '10px system-ui';
        pen.fillText(most > 1e-9 ? words(most) : '', 2, 9);
        if (band && lines.length > 1) {
            const [low, high] = band.map(i => lines[i]);
            pen.fillStyle = style('--band');
            for (const run of runs(samples, k => Number.isFinite(low[k]) && Number.isFinite(high[k]))) {
                pen.beginPath();
                for (const k of run) pen.lineTo(x(samples[k].t), y(high[k]));
                for (const k of run.reverse()) pen.lineTo(x(samples[k].t), y(low[k]));
                pen.fill();
            }
        }
        lines.forEach((line, i) => {
            if (dots) {
                pen.fillStyle = style(series[i].color ?? COLORS[i % COLORS.length]);
                samples.forEach((sample, k) => {
                    if (Number.isFinite(line[k])) pen.fillRect(x(sample.t) - 1.5, y(line[k]) - 1.5, 3, 3);
                });
                return;
            }
            pen.strokeStyle = style(series[i].color ?? COLORS[i % COLORS.length]);
            pen.setLineDash(i % 2 ? [4, 3] : []);
            pen.lineWidth = 1.25;
            pen.beginPath();
            for (const run of runs(samples, k => Number.isFinite(line[k])))
                run.forEach((k, place) => pen[place ? 'lineTo' : 'moveTo'](x(samples[k].t), y(line[k])));
            pen.stroke();
        });
        pen.setLineDash([]);
        let shown = samples.at(-1);
        if (group?.at && samples.length) {
            shown = samples.reduce((best, sample) =>
                Math.abs(sample.t - group.at) < Math.abs(best.t - group.at) ? sample : best,
            );
            pen.strokeStyle = style('--faint');
            pen.beginPath();
            pen.moveTo(x(shown.t), 0);
            pen.lineTo(x(shown.t), height);
            pen.stroke();
        }
        const values = shown
            ? series.map((one, i) => Number(value(shown, i) ?? NaN)).map(v => (Number.isFinite(v) ? words(v) : '–'))
            : [];
        const all = isSum && shown ? series.reduce((sum, one, i) => sum + Number(value(shown, i) ?? 0), 0) : 0;
        text(now, isSum ? (shown ? words(all) : '–') : values.join(' · '));
        canvas.setAttribute('aria-label', `${title}: ${values.join(', ')}${shown ? ' at ' + when(shown.t) : ''}`);
    }
    canvas.addEventListener('pointermove', event =>
        group?.point(from + (event.offsetX / canvas.clientWidth) * (to - from)),
    );
    canvas.addEventListener('pointerleave', () => group?.point(null));
    new ResizeObserver(draw).observe(canvas);
    const self = {
        element,
        draw,
        update(all, start, end) {
            samples = all.filter(sample => sample.t >= start);
            from = start;
            to = end;
            draw();
        },
    };
    group?.plots.add(self);
    return self;
}
