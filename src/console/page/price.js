// What requests would cost on AWS, on demand in us-east-1, in dollars for each unit: as `quipu cost` counts.

export const PRICE_WRITES = 0.625e-6;
export const PRICE_READS = 0.125e-6;

export const dollars = amount =>
    amount === 0
        ? '$0'
        : amount >= 0.01
          ? `$${amount.toFixed(2)}`
          : `$${Number(amount.toPrecision(2)).toFixed(digitsOf(amount))}`;
const digitsOf = amount => Math.min(12, 1 - Math.floor(Math.log10(amount)));

// A sum of what requests say that they took: add(reply.ConsumedCapacity, isWrite).
export function meter() {
    const sum = {reads: 0, writes: 0};
    return {
        sum,
        add(capacity, isWrite = false) {
            for (const one of [capacity ?? []].flat())
                sum[isWrite ? 'writes' : 'reads'] += Number(one.CapacityUnits ?? 0);
        },
        words() {
            const parts = [];
            if (sum.reads || !sum.writes) parts.push(`${round(sum.reads)} read unit${sum.reads === 1 ? '' : 's'}`);
            if (sum.writes) parts.push(`${round(sum.writes)} write unit${sum.writes === 1 ? '' : 's'}`);
            return `${parts.join(', ')} · ${dollars(sum.reads * PRICE_READS + sum.writes * PRICE_WRITES)} on AWS`;
        },
    };
}
const round = number => new Intl.NumberFormat('en', {maximumFractionDigits: 2}).format(number);
