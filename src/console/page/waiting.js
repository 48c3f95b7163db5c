// Asynchronous calls that are not over: items of the table of invocations.

import {dynamo} from './api.js';
import {hasTable, ownTable} from './calls.js';

const SCANNED = 1000; // items of one part of the table

// waiting: its time has not come; due: it has; running: a server has it in hand.
function stateOf(call, now) {
    if (call.owner && call.until > now) return call.due > now ? 'waiting' : 'running';
    return call.due > now ? 'waiting' : 'due';
}
const KINDS = {waiting: 'waiting', due: 'waiting', running: 'running'};

// The next part: {calls, next}. name: of this function alone.
export async function readCalls({name = null, next = null} = {}) {
    if (!(await hasTable('invocations'))) return {calls: [], next: null};
    const page = await dynamo('Scan', {
        TableName: ownTable('invocations'),
        FilterExpression:
            '#part = :first and attribute_not_exists(#ended)' +
            (name ? ' and (#function = :name or begins_with(#function, :qualified))' : ''),
        ExpressionAttributeNames: {'#part': 'part', '#ended': 'ended', ...(name ? {'#function': 'function'} : {})},
        ExpressionAttributeValues: {
            ':first': {N: '0'},
            ...(name ? {':name': {S: name}, ':qualified': {S: name + ':'}} : {}),
        },
        Limit: SCANNED,
        ExclusiveStartKey: next ?? undefined,
    });
    const now = Date.now();
    const calls = page.Items.map(item => {
        const call = {
            id: item.id.S,
            function: item.function?.S ?? '',
            payload: item.payload?.S ?? '',
            accepted: Number(item.accepted?.N ?? 0),
            due: Number(item.due?.N ?? 0),
            attempts: Number(item.attempts?.N ?? 0),
            parts: Number(item.parts?.N ?? 1),
            fence: item.fence?.N ?? '0',
            owner: item.owner?.S,
            until: Number(item.until?.N ?? 0),
        };
        call.state = stateOf(call, now);
        call.kind = KINDS[call.state];
        return call;
    });
    return {calls, next: page.LastEvaluatedKey ?? null};
}

// Takes a call that nobody runs out of the table; false: somebody has it in hand, or it is over.
export async function dropCall(call) {
    try {
        await dynamo('DeleteItem', {
            TableName: ownTable('invocations'),
            Key: {id: {S: call.id}, part: {N: '0'}},
            ConditionExpression: '#fence = :fence and attribute_not_exists(#owner)',
            ExpressionAttributeNames: {'#fence': 'fence', '#owner': 'owner'},
            ExpressionAttributeValues: {':fence': {N: call.fence}},
        });
    } catch (error) {
        if (error.type !== 'ConditionalCheckFailedException') throw error;
        return false;
    }
    for (let part = 1; part < call.parts; part++)
        await dynamo('DeleteItem', {
            TableName: ownTable('invocations'),
            Key: {id: {S: call.id}, part: {N: String(part)}},
        });
    return true;
}
