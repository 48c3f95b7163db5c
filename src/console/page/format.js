// Words for numbers. Each has its exact value for the title (what is shown when the pointer rests on it).

const GROUPS = new Intl.NumberFormat('en', {maximumFractionDigits: 0});

export const count = value =>
    value === null || value === undefined
        ? ''
        : GROUPS.format(typeof value === 'object' ? BigInt(String(value)) : value);
export const plural = (number, one, many = one + 's') => `${count(number)} ${Number(number) === 1 ? one : many}`;

export function short(value) {
    const number = Number(value);
    if (!Number.isFinite(number)) return '';
    const size = Math.abs(number);
    if (size >= 1e9) return trim(number / 1e9) + ' G';
    if (size >= 1e6) return trim(number / 1e6) + ' M';
    if (size >= 1e4) return trim(number / 1e3) + ' k';
    return size >= 100 || Number.isInteger(number) ? GROUPS.format(number) : trim(number);
}

function trim(number) {
    const size = Math.abs(number);
    return number
        .toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2)
        .replace(/\.?0+$/, match => (match.includes('.') ? '' : match));
}

export function bytes(value) {
    const units = ['B', 'KB', 'MB', 'GB', 'TB'];
    let number = Number(value),
        unit = 0;
    while (number >= 1000 && unit < units.length - 1) {
        number /= 1000;
        unit++;
    }
    return `${unit ? trim(number) : number} ${units[unit]}`;
}

export function duration(ms) {
    const value = Number(ms);
    if (!Number.isFinite(value)) return '';
    if (value < 0) return '-' + duration(-value);
    if (value < 1) return `${trim(value * 1000)} µs`;
    if (value < 1000) return `${trim(value)} ms`;
    if (value < 60e3) return `${trim(value / 1000)} s`;
    if (value < 3600e3) return `${Math.floor(value / 60e3)} min ${Math.floor(value / 1000) % 60} s`;
    if (value < 86400e3) return `${Math.floor(value / 3600e3)} h ${Math.floor(value / 60e3) % 60} min`;
    return `${Math.floor(value / 86400e3)} d ${Math.floor(value / 3600e3) % 24} h`;
}
export const micros = us => duration(Number(us) / 1000);

// A moment as a Date, from milliseconds, seconds or ISO 8601; null when it is none.
export function moment(value) {
    if (value === null || value === undefined || value === '') return null;
    const number = Number(value);
    const date = Number.isFinite(number) ? new Date(number < 1e11 ? number * 1000 : number) : new Date(value);
    return Number.isNaN(date.getTime()) ? null : date;
}

const TIME = new Intl.DateTimeFormat(undefined, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
});
const DAY = new Intl.DateTimeFormat(undefined, {year: 'numeric', month: 'short', day: 'numeric'});

// In the viewer's zone: the time alone when it is today.
export function when(value) {
    const date = moment(value);
    if (!date) return '';
    const isToday = date.toDateString() === new Date().toDateString();
    return isToday ? TIME.format(date) : `${DAY.format(date)} ${TIME.format(date)}`;
}
export const utc = value => moment(value)?.toISOString() ?? '';

export function ago(value, now = Date.now()) {
    const date = moment(value);
    if (!date) return '';
    const ms = now - date.getTime();
    return ms >= 0 ? (ms < 1500 ? 'now' : `${roughly(ms)} ago`) : `in ${roughly(-ms)}`;
}
const roughly = ms =>
    ms < 60e3
        ? `${Math.round(ms / 1000)} s`
        : ms < 3600e3
          ? `${Math.round(ms / 60e3)} min`
          : ms < 86400e3
            ? `${Math.round(ms / 3600e3)} h`
            : `${Math.round(ms / 86400e3)} d`;
