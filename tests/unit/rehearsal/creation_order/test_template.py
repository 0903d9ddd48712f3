"""Dependencies of the resources of a template."""

from rehearsal.creation_order.template import Dependencies


def test_dependencies_are_found_in_all_forms() -> None:
    value = {
        "a": [{"Ref": "One"}, {"Fn::GetAtt": ["Two", "Arn"]}, {"Fn::GetAtt": "Three.Arn"}],
        "b": {"Fn::Sub": "x-${Four}-${!No}-${AWS::Region}"},
        "c": {"Fn::Sub": ["${Own}${Five.Arn}", {"Own": {"Ref": "Six"}}]},
    }
    names = ("One", "Two", "Three", "Four", "Five", "Six", "Own", "No")
    resources = {name: {"Type": "T"} for name in names} | {"It": {"Type": "T", "Properties": value}}
    assert Dependencies(resources).direct["It"] == {"One", "Two", "Three", "Four", "Five", "Six", "Own"}
