export * from "@codemirror/commands";
export * from "@codemirror/language";
export { javascript, json } from "@codemirror/legacy-modes/mode/javascript";
export { python } from "@codemirror/legacy-modes/mode/python";
export { shell } from "@codemirror/legacy-modes/mode/shell";
export * from "@codemirror/state";
export * from "@codemirror/view";
export { tags } from "@lezer/highlight";
