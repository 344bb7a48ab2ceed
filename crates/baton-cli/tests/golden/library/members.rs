//! The lines of one item: itself, its fields, variants and functions.

use quote::ToTokens;
use syn::{Fields, FnArg, ImplItem, Item, ItemImpl, Pat, TraitItem};

use super::{is_public, signature::shown, tree::is_hidden};

/// An item and its members that need no `impl`.
pub(super) fn item_lines(item: &Item, path: &str) -> Vec<String> {
    match item {
        Item::Struct(it) => {
            let mut lines = vec![format!("struct {path}{}", generics(&it.generics))];
            lines.extend(fields(&it.fields, path, true));
            lines
        }
        Item::Enum(it) => {
            let mut lines = vec![format!("enum {path}{}", generics(&it.generics))];
            for variant in it.variants.iter().filter(|variant| !is_hidden(&variant.attrs)) {
                let path = format!("{path}::{}", variant.ident);
                lines.push(format!("variant {path}"));
                lines.extend(fields(&variant.fields, &path, false));
            }
            lines
        }
        Item::Trait(it) => {
            let head = if it.supertraits.is_empty() { String::new() } else { format!(": {}", shown(&it.supertraits)) };
            let members = it.items.iter().filter_map(|member| match member {
                TraitItem::Fn(it) if !is_hidden(&it.attrs) => Some(function(&it.sig, path)),
                TraitItem::Type(it) => Some(format!("type {path}::{}", it.ident)),
                TraitItem::Const(it) => Some(format!("const {path}::{}: {}", it.ident, shown(&it.ty))),
                _ => None,
            });
            [format!("trait {path}{}{head}", generics(&it.generics))].into_iter().chain(members).collect()
        }
        Item::Fn(it) => vec![function(&it.sig, path.rsplit_once("::").map_or("", |(path, _)| path))],
        Item::Type(it) => vec![format!("type {path}{} = {}", generics(&it.generics), shown(&it.ty))],
        Item::Const(it) => vec![format!("const {path}: {}", shown(&it.ty))],
        Item::Static(it) => vec![format!("static {path}: {}", shown(&it.ty))],
        _ => Vec::new(),
    }
}

/// What an `impl` without a trait adds to a type.
pub(super) fn impl_lines(block: &ItemImpl, path: &str) -> Vec<String> {
    let lines = block.items.iter().filter_map(|member| match member {
        ImplItem::Fn(it) if is_public(&it.vis) && !is_hidden(&it.attrs) => Some(function(&it.sig, path)),
        ImplItem::Const(it) if is_public(&it.vis) => Some(format!("const {path}::{}: {}", it.ident, shown(&it.ty))),
        _ => None,
    });
    lines.collect()
}

fn function(signature: &syn::Signature, path: &str) -> String {
    let mut told = signature.clone();
    told.ident = syn::Ident::new("NAME", signature.ident.span());
    // Whether a function changes its own copy of an argument is nothing to its caller.
    for argument in &mut told.inputs {
        match argument {
            FnArg::Receiver(it) => it.mutability = None,
            FnArg::Typed(it) => {
                if let Pat::Ident(name) = &mut *it.pat {
                    name.mutability = None;
                }
            }
        }
    }
    shown(&told).replacen("NAME", &format!("{path}::{}", signature.ident), 1)
}

fn fields(fields: &Fields, path: &str, only_public: bool) -> Vec<String> {
    let named = fields.iter().enumerate().filter(|(_, field)| !only_public || is_public(&field.vis));
    let lines = named.filter(|(_, field)| !is_hidden(&field.attrs)).map(|(at, field)| {
        let name = field.ident.as_ref().map_or_else(|| at.to_string(), ToString::to_string);
        format!("field {path}.{name}: {}", shown(&field.ty.to_token_stream()))
    });
    lines.collect()
}

/// The parameters of a type in their brackets, if it has some.
fn generics(generics: &syn::Generics) -> String {
    if generics.params.is_empty() { String::new() } else { format!("<{}>", shown(&generics.params)) }
}
