// An operation of DynamoDB as one would write it elsewhere: curl, boto3, JavaScript; for the line that teaches.

import {Exact, print} from './json.js';
import {shell} from './parts.js';

const snake = name => name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();

function python(value) {
    if (value === null || value === undefined) return 'None';
    if (value === true) return 'True';
    if (value === false) return 'False';
    if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`;
    if (typeof value === 'object' && !(value instanceof Exact))
        return `{${given(value)
            .map(([name, one]) => `${print(name, 0)}: ${python(one)}`)
            .join(', ')}}`;
    return print(value, 0);
}
const given = value => Object.entries(value).filter(([, one]) => one !== undefined);

// A client of this server, in Python.
export const boto3 = service => `boto3.client('${service}', endpoint_url='${location.origin}')`;

// cli: the words of the command line, where it has the same; the first form of the line.
export function sdk(operation, input, cli = null) {
    const words = given(input);
    const body = print(Object.fromEntries(words), 0);
    return {
        CLI: cli,
        curl: shell(
            'curl',
            '-s',
            location.origin,
            '-H',
            `X-Amz-Target: DynamoDB_20120810.${operation}`,
            '-H',
            'Content-Type: application/x-amz-json-1.0',
            '-d',
            body,
        ),
        boto3:
            `${boto3('dynamodb')}.${snake(operation)}(` +
            words.map(([name, value]) => `${name}=${python(value)}`).join(', ') +
            ')',
        JavaScript:
            `await new DynamoDBClient({endpoint: '${location.origin}'})` + `.send(new ${operation}Command(${body}))`,
    };
}
