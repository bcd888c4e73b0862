import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';

/** Repeats the instructions, for clients that do not show a server's instructions to the model. */
const prompt = {
  name: 'instructions',
  title: 'How to use Postern here',
  description: 'Instructions of Postern and its administrators for the agents of this client.',
};

/** `instructions`: empty when there are none; then there is no prompt. */
export function listedPrompts(instructions: string) {
  return instructions === '' ? [] : [prompt];
}

/** @throws ProtocolError */
export function readPrompt(name: string, instructions: string) {
  if (!listedPrompts(instructions).some((one) => one.name === name))
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such prompt. Read prompts/list.');
  const { description } = prompt;
  return {
    description,
    messages: [{ role: 'user' as const, content: { type: 'text' as const, text: instructions } }],
  };
}
