// Whether a value is one that a validator takes, in the form in which functions export theirs.

const SIMPLE = {
  any: () => true,
  null: (value) => value === null,
  number: (value) => typeof value === "number",
  bigint: (value) => typeof value === "bigint",
  boolean: (value) => typeof value === "boolean",
  string: (value) => typeof value === "string",
  bytes: (value) => value instanceof ArrayBuffer,
};

function isPlain(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isTakenObject(fields, value) {
  if (!isPlain(value)) return false;
  const given = Object.keys(value).filter((name) => value[name] !== undefined);
  const isMissing = ([name, { optional }]) => !optional && !given.includes(name);
  if (Object.entries(fields).some(isMissing)) return false;
  return given.every((name) => name in fields && isTaken(fields[name].fieldType, value[name]));
}

export function isTaken(validator, value) {
  switch (validator.type) {
    case "literal":
      return value === validator.value;
    case "id":
      return typeof value === "string" && value.endsWith(`;${validator.tableName}`);
    case "array":
      return Array.isArray(value) && value.every((one) => isTaken(validator.value, one));
    case "union":
      return validator.value.some((one) => isTaken(one, value));
    case "record":
      return isPlain(value) && Object.values(value).every((one) => isTaken(validator.values.fieldType, one));
    case "object":
      return isTakenObject(validator.value, value);
    default:
      return SIMPLE[validator.type]?.(value) ?? true;
  }
}
