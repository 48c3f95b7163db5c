// What a table is, in words: its keys, indexes, stream, expiry and billing, of what DescribeTable tells.

import {dynamo, pages} from './api.js';
import {count} from './format.js';
import {state} from './parts.js';

const PAGE = 100; // names in one ListTables

// All tables, page by page.
export const tablePages = options =>
    pages(
        from => dynamo('ListTables', {Limit: PAGE, ExclusiveStartTableName: from}, options),
        page => page.LastEvaluatedTableName,
    );
// Their names, as many pages as hold `most`.
export async function tableNames(most) {
    const names = [];
    for await (const page of tablePages()) {
        names.push(...page.TableNames);
        if (names.length >= most) break;
    }
    return names;
}

const typesOf = table =>
    Object.fromEntries(table.AttributeDefinitions.map(one => [one.AttributeName, one.AttributeType]));

export const indexesOf = table => [...(table.GlobalSecondaryIndexes ?? []), ...(table.LocalSecondaryIndexes ?? [])];

// [{name, type, isHash}] of the table, or of its index of this name.
export function keysOf(table, index = null) {
    const types = typesOf(table);
    const schema = index ? indexesOf(table).find(one => one.IndexName === index)?.KeySchema : table.KeySchema;
    return (schema ?? []).map(one => ({
        name: one.AttributeName,
        type: types[one.AttributeName],
        isHash: one.KeyType === 'HASH',
    }));
}

const STATES = {ACTIVE: 'ok', CREATING: 'running', UPDATING: 'running', DELETING: 'failed'};
export const tableState = status => state(STATES[status] ?? 'waiting', status.toLowerCase());

export const VIEWS = {
    NEW_AND_OLD_IMAGES: 'new and old',
    NEW_IMAGE: 'new',
    OLD_IMAGE: 'old',
    KEYS_ONLY: 'keys',
};
export const viewOf = table =>
    table.StreamSpecification?.StreamEnabled ? table.StreamSpecification.StreamViewType : null;
export const streamWords = table => VIEWS[viewOf(table)] ?? 'off';
export const isOnDemand = table => table.BillingModeSummary?.BillingMode === 'PAY_PER_REQUEST';
export const billingWords = table =>
    isOnDemand(table)
        ? 'on demand'
        : `${count(table.ProvisionedThroughput?.ReadCapacityUnits ?? 0)} read, ` +
          `${count(table.ProvisionedThroughput?.WriteCapacityUnits ?? 0)} write units`;
export const ttlWords = ttl => (/^ENABL/.test(ttl?.TimeToLiveStatus ?? '') ? ttl.AttributeName : 'off');
export const projectionWords = projection =>
    projection.ProjectionType === 'INCLUDE'
        ? `keys and ${(projection.NonKeyAttributes ?? []).join(', ')}`
        : projection.ProjectionType === 'KEYS_ONLY'
          ? 'keys only'
          : 'all';
